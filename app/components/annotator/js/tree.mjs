// The left pane: the span tree (only the rows in view are made), its filters, and the map of time.

import { el, replaceIn, say, svg } from "./page.mjs";
import { countText } from "./text.mjs";
import { durationText, foldAll, searchSpans, spanAtPoint, timeMap, TJ_KINDS, visibleRows } from "./spans.mjs";

const TJ_ROW = 28;
const TJ_MAP_ROW = 9;
const TJ_MAP_ROWS = 7;

export class Tree {
  constructor(desk) {
    this.desk = desk;
    this.folded = new Set();
    this.kinds = new Set();
    this.only = new Set(); // "failed", "labelled"
    this.query = "";
    this.hits = null;
    this.rows = [];
    this.rowOf = new Map();
    this.scroller = desk.part("tree");
    this.canvas = el("div", { class: "tj-tree-rows", role: "presentation" });
    replaceIn(this.scroller, this.canvas);
    this.scroller.addEventListener("scroll", () => this.schedule(), { signal: desk.signal });
    new ResizeObserver(() => this.schedule()).observe(this.scroller);
    this.buildFilters();
    this.refresh();
  }

  get spans() {
    return this.desk.trace.spans;
  }

  /** Works the rows out again: after folding, a filter, a search, or new labels with the filter on them. */
  refresh() {
    const isFiltered = this.kinds.size || this.only.size || this.hits !== null;
    const hits = this.hits === null ? null : new Set(this.hits);
    const labelled = this.desk.place.labelledSpans();
    const accepts = (seq) =>
      (!this.kinds.size || this.kinds.has(this.spans.kind[seq])) &&
      (!this.only.has("failed") || this.spans.status[seq] === 2) &&
      (!this.only.has("labelled") || labelled.has(seq)) &&
      (!this.only.has("outline") || labelled.has(seq) || this.isInOutline(seq)) &&
      (hits === null || hits.has(seq));
    this.accepts = isFiltered ? accepts : null;
    this.rows = visibleRows(this.spans, this.folded, this.accepts);
    this.rowOf = new Map(this.rows.map((seq, row) => [seq, row]));
    this.canvas.style.height = this.rows.length * TJ_ROW + "px";
    this.desk.part("tree-count").textContent = isFiltered
      ? `${countText(this.rows.filter(accepts).length)} of ${countText(this.spans.size)}`
      : `${countText(this.spans.size)} span${this.spans.size === 1 ? "" : "s"}`;
    this.draw();
  }

  /** Agents, plans, failures and the last answer of a model: what one reads a long trace by. */
  isInOutline(seq) {
    const { spans, desk } = this;
    this.lastAnswer ??= spans.kind.findLastIndex((kind) => TJ_KINDS[kind] === "LLM");
    return TJ_KINDS[spans.kind[seq]] === "AGENT" || desk.trace.plans.has(seq) || spans.status[seq] === 2 || seq === this.lastAnswer;
  }

  toggleOutline() {
    [...this.desk.part("filters").children].find((chip) => chip.dataset.only === "outline").click();
  }

  schedule() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw() {
    const height = this.scroller.clientHeight || 400;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / TJ_ROW) - 8);
    const last = Math.min(this.rows.length, first + Math.ceil(height / TJ_ROW) + 16);
    const marks = this.desk.place.marksBySpan();
    const nodes = [];
    for (let row = first; row < last; row++) nodes.push(this.row(row, marks));
    if (!this.rows.length) nodes.push(el("p", { class: "tj-empty", text: this.hits && !this.hits.length ? (this.isAsking ? "Searching…" : `No span contains “${this.query}”. Esc in the search field shows all spans.`) : "No span passes these filters." }));
    replaceIn(this.canvas, ...nodes);
    this.scroller.setAttribute("aria-activedescendant", this.rowId(this.desk.place.current));
  }

  rowId(seq) {
    return "tj-row-" + seq;
  }

  row(row, marks) {
    const seq = this.rows[row];
    const { spans, desk } = this;
    const isFolder = spans.hasChildren(seq);
    const isOpen = isFolder && !this.folded.has(seq);
    const isDim = this.accepts !== null && !this.accepts(seq);
    const caret = isFolder
      ? el("span", { class: "tj-caret" + (isOpen ? " tj-open" : ""), "data-fold": seq, "aria-hidden": "true" })
      : el("span", { class: "tj-caret tj-leaf", "aria-hidden": "true" });
    const errors = marks.get(seq) || [];
    return el(
      "div",
      {
        id: this.rowId(seq),
        class: "tj-row" + (seq === desk.place.current ? " tj-now" : "") + (isDim ? " tj-dim" : ""),
        role: "treeitem",
        "aria-level": spans.depth[seq] + 1,
        "aria-selected": seq === desk.place.current ? "true" : "false",
        "aria-expanded": isFolder ? String(isOpen) : null,
        "data-seq": seq,
        style: `top:${row * TJ_ROW}px;--tj-depth:${Math.min(spans.depth[seq], 14)}`,
        title: rowTitle(spans, seq),
      },
      caret,
      kindBadge(spans.kind[seq]),
      el("span", { class: "tj-row-name" }, el("bdi", { text: spans.title(seq) })),
      desk.trace.plans.has(seq) ? el("span", { class: "tj-plan-mark", text: "plan" }) : null,
      errors.length ? errorMarks(errors) : null,
      spans.status[seq] === 2 ? el("span", { class: "tj-failed", text: "failed" }) : null,
      el("span", { class: "tj-row-ordinal", text: "S" + (seq + 1) }),
    );
  }

  listen() {
    this.canvas.addEventListener("click", (event) => {
      const row = event.target.closest("[data-seq]");
      if (!row) return;
      if (event.target.closest("[data-fold]")) this.toggle(+row.dataset.seq);
      else this.desk.place.select(+row.dataset.seq, { from: "tree" });
    });
    this.canvas.addEventListener("dblclick", (event) => {
      const row = event.target.closest("[data-seq]");
      if (row && this.spans.hasChildren(+row.dataset.seq)) this.toggle(+row.dataset.seq);
    });
  }

  toggle(seq) {
    const target = this.spans.hasChildren(seq) ? seq : this.spans.parent[seq];
    if (target < 0) return;
    if (!this.folded.delete(target)) this.folded.add(target);
    if (!this.rowOf.has(this.desk.place.current) || this.isInside(this.desk.place.current, target)) this.desk.place.select(target, { from: "tree" });
    this.refresh();
  }

  isInside(seq, folder) {
    return this.folded.has(folder) && seq > folder && seq <= this.spans.last[folder];
  }

  toggleAll() {
    this.folded = foldAll(this.spans, this.folded);
    this.refresh();
    this.reveal(this.desk.place.current);
  }

  /** The row after or before the one in hand; the same where there is none. */
  neighbour(step) {
    if (!this.rows.length) return this.desk.place.current + step; // nothing is listed: the keys go through the conversation
    const row = this.rowOf.get(this.desk.place.current);
    if (row === undefined) return this.rows.find((seq) => seq >= this.desk.place.current) ?? this.desk.place.current;
    return this.rows[Math.min(this.rows.length - 1, Math.max(0, row + step))];
  }

  /** Unfolds what hides `seq` and brings its row into view. */
  reveal(seq) {
    let isHidden = false;
    for (let up = this.spans.parent[seq]; up >= 0; up = this.spans.parent[up]) isHidden = this.folded.delete(up) || isHidden;
    if (isHidden) this.refresh();
    const row = this.rowOf.get(seq);
    if (row === undefined) return this.schedule();
    const [top, height] = [row * TJ_ROW, this.scroller.clientHeight];
    if (top < this.scroller.scrollTop + TJ_ROW) this.scroller.scrollTop = top - 2 * TJ_ROW;
    else if (top > this.scroller.scrollTop + height - 2 * TJ_ROW) this.scroller.scrollTop = top - height + 3 * TJ_ROW;
    this.schedule();
    this.drawCursor();
  }

  buildFilters() {
    const { desk, spans } = this;
    const counts = new Map();
    for (const kind of spans.kind) counts.set(kind, (counts.get(kind) || 0) + 1);
    const failed = spans.status.reduce((sum, status) => sum + (status === 2), 0);
    const chips = [...counts]
      .sort(([a], [b]) => a - b)
      .map(([kind, count]) => this.filterChip(TJ_KINDS[kind].toLowerCase(), count, this.kinds, kind));
    chips.unshift(this.filterChip("outline", null, this.only, "outline"));
    if (failed) chips.push(this.filterChip("failed", failed, this.only, "failed"));
    chips.push(this.filterChip("labelled", null, this.only, "labelled"));
    replaceIn(desk.part("filters"), ...chips);
    const search = desk.part("search");
    search.value = "";
    search.oninput = () => this.search(search.value);
    search.onkeydown = (event) => this.searchKey(event);
  }

  filterChip(name, count, chosen, value) {
    const chip = el(
      "button",
      { class: "tj-filter", "aria-pressed": "false", title: `Show only: ${name}`, "data-only": value },
      el("span", { text: name }),
      count === null ? null : el("span", { class: "tj-count", text: countText(count) }),
    );
    chip.onclick = () => {
      if (!chosen.delete(value)) chosen.add(value);
      chip.setAttribute("aria-pressed", String(chosen.has(value)));
      this.refresh();
    };
    return chip;
  }

  searchKey(event) {
    if (event.isComposing) return; // Enter and Esc belong to the input method
    if (event.key === "Enter") {
      event.preventDefault();
      if (this.hits && !this.hits.length) return this.sayNoHit(); // the focus stays: what is typed next is still a search
      this.desk.focusPane("text");
      this.nextHit();
    } else if (event.key === "Escape") {
      event.target.value = "";
      this.search("");
      this.desk.focusPane("tree");
    }
  }

  search(query) {
    this.query = query.trim();
    this.hits = this.query ? searchSpans(this.spans, this.query, (seq) => this.desk.trace.loadedTexts(seq)) : null;
    this.desk.reader.markAll();
    clearTimeout(this.searchTimer);
    this.isAsking = this.query.length > 1 && !this.desk.trace.isWhole;
    this.refresh();
    if (this.isAsking) this.searchTimer = setTimeout(() => this.searchServer(this.query), 250);
  }

  /** Texts that have not been loaded are searched by the server; hits are joined. */
  async searchServer(query) {
    const answer = await this.desk.connection.fetchJson("search/" + encodeURIComponent(this.desk.traceId), { q: query });
    if (!answer || query !== this.query) return;
    this.hits = [...new Set([...this.hits, ...answer.hits])].sort((a, b) => a - b);
    this.isAsking = false;
    this.refresh();
  }

  nextHit() {
    if (!this.hits) return say(this.desk, "Search first");
    if (!this.hits.length) return this.sayNoHit();
    this.desk.place.select(this.hits.find((seq) => seq > this.desk.place.current) ?? this.hits[0], { toHit: true });
  }

  sayNoHit() {
    say(this.desk, this.isAsking ? `Searching for “${this.query}”…` : `No span contains “${this.query}”`);
  }

  mapWidth() {
    return Math.max(120, this.desk.part("map").clientWidth - 20); // less its padding
  }

  drawMap(width) {
    const host = this.desk.part("map");
    let deepest = 0;
    for (const depth of this.spans.depth) deepest = Math.max(deepest, depth);
    const rows = Math.min(deepest + 1, TJ_MAP_ROWS);
    this.map = timeMap(this.spans, width, TJ_MAP_ROW, TJ_MAP_ROWS);
    const shapes = [...this.map.paths].map(([kind, d]) => svg("path", { d, class: "tj-map-kind tj-kind-" + TJ_KINDS[kind].toLowerCase() }));
    this.marks = svg("g", { class: "tj-map-marks" });
    this.cursor = svg("rect", { class: "tj-map-cursor", y: 0, width: 2, height: rows * TJ_MAP_ROW });
    const picture = svg("svg", { width, height: rows * TJ_MAP_ROW + 8, role: "img", "aria-label": "Spans over time, a row for each depth" }, ...shapes, this.cursor, this.marks);
    picture.addEventListener("click", (event) => this.mapClick(event, picture));
    const span = this.map.to - this.map.from;
    replaceIn(
      host,
      picture,
      el("div", { class: "tj-map-scale" }, el("span", { text: this.map.hasTimes ? "0 s" : "S1" }), el("span", { text: this.map.hasTimes ? durationText(span) : "S" + this.spans.size })),
    );
    this.drawCursor();
    this.drawMarks();
  }

  mapClick(event, picture) {
    const box = picture.getBoundingClientRect();
    const seq = spanAtPoint(this.spans, this.map, event.clientX - box.left, Math.floor((event.clientY - box.top) / TJ_MAP_ROW));
    if (seq >= 0) this.desk.place.select(seq, {});
  }

  drawCursor() {
    if (this.map) this.cursor.setAttribute("x", Math.max(0, this.map.places[2 * this.desk.place.current] - 0.5));
  }

  drawMarks() {
    if (!this.map || (this.drawnMarks === this.desk.work.state.errors && this.drawnMap === this.map)) return;
    [this.drawnMarks, this.drawnMap] = [this.desk.work.state.errors, this.map];
    const bottom = +this.cursor.getAttribute("height") + 5;
    this.marks.replaceChildren(
      ...[...this.desk.place.marksBySpan()].map(([seq, errors]) =>
        svg("circle", { cx: Math.max(3, this.map.places[2 * seq]), cy: bottom, r: 3, class: "tj-impact-" + worst(errors) }),
      ),
    );
  }
}

export function kindBadge(kind) {
  const name = TJ_KINDS[kind];
  return el("span", { class: "tj-kind tj-kind-" + name.toLowerCase(), title: name.toLowerCase(), text: name === "UNKNOWN" ? "SPAN" : name.slice(0, 5) });
}

function rowTitle(spans, seq) {
  const agent = spans.agentOf(seq);
  const facts = [spans.names[spans.name[seq]], agent && `agent ${agent}`, durationText(spans.duration[seq]), spans.id[seq]];
  return facts.filter(Boolean).join("\n");
}

function worst(errors) {
  return errors.includes("high") ? "high" : errors.includes("medium") ? "medium" : errors.includes("low") ? "low" : "none";
}

function errorMarks(impacts) {
  const label = `${impacts.length} error${impacts.length > 1 ? "s" : ""}, worst impact ${worst(impacts)}`;
  return el("span", { class: "tj-marks tj-impact-" + worst(impacts), title: label, "aria-label": label, role: "img" }, el("i", {}), impacts.length > 1 ? String(impacts.length) : null);
}
