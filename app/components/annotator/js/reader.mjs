// The middle pane: the conversation, each text once, blocks made when they come near the view.

import { charactersText, copyText, el, keepSelection, markRanges, rangeIn, replaceIn, selectedText, showText } from "./page.mjs";
import { durationText } from "./spans.mjs";
import { countText, evidenceOf, extendBySentence, placeEvidence, shrinkBySentence, unitAtCodePoint } from "./text.mjs";
import { kindBadge } from "./tree.mjs";

const TJ_GROUP = 12;
const TJ_CLIP = { system: 900, reasoning: 320, other: 6000 }; // longer texts show a head first
const TJ_CLIPPED = { system: 480, reasoning: 160, other: 3600 };

export class Reader {
  constructor(desk) {
    this.desk = desk;
    this.scroller = desk.part("text");
    this.opened = new Set(); // `seq:part` shown whole, `seq:part:piece` a repeat opened, `seq:repeats`
    this.groups = [];
    this.layouts = new Map(); // name of a text, with `p` where it is prose -> its layout, null where it has none
    this.asked = new Set();
    this.shown = new Map(); // `seq:part:hash` -> the picture or player that was asked for
    this.flow = el("div", { class: "tj-flow" });
    replaceIn(this.scroller, this.flow);
    this.watcher = new IntersectionObserver((entries) => this.watch(entries), { root: this.scroller, rootMargin: "1400px 0px" });
    for (let first = 0; first < desk.trace.spans.size; first += TJ_GROUP) this.addGroup(first);
  }

  addGroup(first) {
    const last = Math.min(first + TJ_GROUP, this.desk.trace.spans.size);
    const node = el("div", { class: "tj-group", "data-first": first });
    node.style.minHeight = this.estimate(first, last) + "px";
    this.flow.append(node);
    this.groups.push({ first, last, node, isDrawn: false });
    this.watcher.observe(node);
  }

  estimate(first, last) {
    let height = 0;
    for (let seq = first; seq < last; seq++) height += 44 + Math.min(600, this.desk.trace.loadedTexts(seq).reduce((sum, text) => sum + 40 + text.length / 5, 0) || 60);
    return Math.round(height);
  }

  watch(entries) {
    for (const entry of entries) {
      const group = this.groups[+entry.target.dataset.first / TJ_GROUP];
      if (entry.isIntersecting) this.draw(group);
      else if (group.isDrawn && !this.isInUse(group)) this.clear(group, entry.boundingClientRect.height);
    }
  }

  isInUse(group) {
    const { current } = this.desk.place;
    const selection = window.getSelection();
    return (
      (current >= group.first && current < group.last) ||
      group.node.contains(document.activeElement) ||
      (selection && selection.rangeCount > 0 && group.node.contains(selection.anchorNode))
    );
  }

  clear(group, height) {
    group.node.style.minHeight = Math.round(height) + "px";
    group.node.replaceChildren();
    group.isDrawn = false;
  }

  draw(group) {
    if (group.isDrawn) return;
    group.isDrawn = true;
    const nodes = [];
    for (let seq = group.first; seq < group.last; seq++) nodes.push(this.block(seq));
    group.node.replaceChildren(...nodes);
    group.node.style.minHeight = "";
    if (!this.isLoaded(group)) this.load(group);
    else this.loadLayouts();
    this.scheduleMarks();
  }

  isLoaded({ first, last }) {
    return Boolean(this.desk.trace.blocks[first] && this.desk.trace.blocks[last - 1]);
  }

  async load(group) {
    await this.desk.trace.rest;
    const isLoaded = this.isLoaded(group) || (await this.desk.trace.loadBlocks(group.first, group.last - group.first));
    if (!group.isDrawn || !this.groups.includes(group)) return;
    this.refill(group, isLoaded ? null : "This span could not be loaded.");
  }

  refill(group, problem = null) {
    const hold = this.heldPlace();
    for (let seq = group.first; seq < group.last; seq++) this.redraw(seq, problem);
    hold();
    this.loadLayouts();
  }

  /** The layout of a text, null where it is shown as it stands; asked for where it is not known yet. */
  layoutOf(part) {
    if (!this.desk.isPretty) return null;
    const name = part.text + (isProse(part) ? "p" : "");
    if (!this.layouts.has(name)) this.asked.add(name);
    return this.layouts.get(name) || null;
  }

  /** Fetches the layouts that were asked for and draws the spans in view that have one. */
  async loadLayouts() {
    if (this.isAsking || !this.asked.size) return;
    this.isAsking = true;
    const names = [...this.asked].slice(0, 200);
    const answer = await this.desk.connection.fetchFrom("layout/" + encodeURIComponent(this.desk.traceId), { texts: names.join(",") }, (reply) => reply.json(), { isQuiet: true });
    this.isAsking = false;
    if (this.desk.signal.aborted || !answer || answer.digest !== this.desk.trace.doc.digest) return; // the text stays raw
    const fresh = Object.entries(answer.layouts).filter(([name]) => !this.layouts.has(name));
    for (const [name, layout] of fresh) this.layouts.set(name, layout);
    for (const name of fresh.length ? fresh.map(([each]) => each) : names) this.asked.delete(name);
    this.showLayouts(new Set(fresh.filter(([, layout]) => layout).map(([name]) => name)));
    this.loadLayouts();
  }

  showLayouts(names) {
    const hold = this.heldPlace(true);
    const has = (seq) => (this.desk.trace.blocks[seq]?.parts || []).some((part) => names.has(part.text + (isProse(part) ? "p" : "")));
    const twin = (host) => this.hostsOf(+host.dataset.seq, host.dataset.field).find((each) => each.tjFrom === host.tjFrom);
    keepSelection(this.scroller, twin, () => {
      for (const group of this.groups) if (group.isDrawn) for (let seq = group.first; seq < group.last; seq++) if (has(seq) && !this.blockNode(seq)?.contains(document.activeElement)) this.redraw(seq);
    });
    hold();
  }

  /** Keeps the span in hand where it stands on the screen while others around it change their height. */
  heldPlace(isAlways = false) {
    const before = this.blockNode(this.desk.place.current)?.getBoundingClientRect().top;
    return () => {
      const after = this.blockNode(this.desk.place.current)?.getBoundingClientRect().top;
      if (before !== undefined && after !== undefined && (isAlways || this.justMoved)) this.scroller.scrollTop += after - before;
    };
  }

  blockNode(seq) {
    return this.groupOf(seq)?.node.querySelector(`[data-block="${seq}"]`) || null;
  }

  groupOf(seq) {
    return this.groups[Math.floor(seq / TJ_GROUP)];
  }

  redraw(seq, problem = null) {
    const old = this.blockNode(seq);
    if (old) old.replaceWith(this.block(seq, problem));
    this.scheduleMarks();
  }

  block(seq, problem = null) {
    const { desk } = this;
    const block = desk.trace.blocks[seq];
    const body = !block
      ? [el("div", { class: "tj-loading", text: problem || "Loading…" }, problem ? el("button", { class: "tj-link", text: "Try again", on: { click: () => this.load(this.groupOf(seq)) } }) : null)]
      : [this.repeats(seq, block), ...block.parts.map((part, number) => this.part(seq, part, number))];
    return el(
      "article",
      {
        class: "tj-block" + (seq === desk.place.current ? " tj-now" : "") + (desk.trace.spans.status[seq] === 2 ? " tj-has-failed" : ""),
        "data-block": seq,
        "aria-labelledby": "tj-head-" + seq,
      },
      this.header(seq),
      ...desk.trace.warningsOf(seq).map((warning) => el("div", { class: "tj-warning" }, el("bdi", { text: warning }))),
      ...body,
    );
  }

  header(seq) {
    const { desk } = this;
    const { spans } = desk.trace;
    const agent = spans.agentOf(seq);
    const facts = [
      spans.tool[seq] >= 0 && spans.names[spans.name[seq]] !== spans.title(seq) ? spans.names[spans.name[seq]] : null,
      durationText(spans.duration[seq]),
      spans.tokens[seq] === null ? null : countText(spans.tokens[seq]) + " tokens",
      spans.model[seq] >= 0 ? desk.trace.models[spans.model[seq]] : null,
    ].filter(Boolean);
    return el(
      "header",
      { class: "tj-block-head", id: "tj-head-" + seq },
      el("span", { class: "tj-ordinal", text: "S" + (seq + 1) }),
      kindBadge(spans.kind[seq]),
      el("strong", { class: "tj-block-name" }, el("bdi", { text: spans.title(seq) })),
      agent ? el("span", { class: "tj-agent", title: "agent" }, el("bdi", { text: agent })) : null,
      spans.status[seq] === 2 ? el("span", { class: "tj-failed", text: "failed" }) : null,
      el("span", { class: "tj-facts" }, el("bdi", { text: facts.join(" · ") })),
      el(
        "span",
        { class: "tj-block-acts" },
        el("button", { class: "tj-quiet", title: "Copy the span's id", text: spans.id[seq].slice(0, 8), on: { click: () => copyText(desk, spans.id[seq], "Span id") } }),
        el("button", { class: "tj-quiet", title: "Copy a link to this span", text: "link", on: { click: () => copyText(desk, desk.place.linkTo(seq), "Link") } }),
      ),
    );
  }

  repeats(seq, block) {
    if (!block.repeats.length) return null;
    const key = seq + ":repeats";
    const isOpen = this.opened.has(key);
    const count = block.repeats.length;
    const from = [...new Set(block.repeats.map(([, ordinal]) => ordinal))];
    const where = from.length > 4 ? from.slice(0, 3).join(", ") + " and " + (from.length - 3) + " more" : from.join(", ");
    const toggle = el("button", { class: "tj-repeats", "aria-expanded": String(isOpen), text: `${count} message${count > 1 ? "s" : ""} seen before (${where})` });
    toggle.onclick = () => this.toggleOpen(key, seq);
    const list = isOpen ? block.repeats.map((repeat, number) => this.part(seq, repeatPart(repeat), "r" + number)) : [];
    return el("div", { class: "tj-repeated" }, toggle, ...list);
  }

  toggleOpen(key, seq) {
    if (!this.opened.delete(key)) this.opened.add(key);
    this.redraw(seq);
  }

  part(seq, part, number) {
    const { desk } = this;
    const key = `${seq}:${number}`;
    const text = desk.trace.textOf(part.text);
    const role = roleOf(part);
    const isMessage = part.field.startsWith("message:");
    const layout = this.layoutOf(part);
    const node = el("section", { class: `tj-part tj-role-${role}` + (part.plan ? " tj-plan" : "") + (isReasoning(part) ? " tj-reasoning" : ""), "data-part": key, "data-field": part.field });
    const label = el("div", { class: "tj-part-label" }, el("bdi", { text: part.label }), part.from ? el("span", { class: "tj-tag", text: "from " + part.from }) : null);
    if (part.plan) label.append(el("span", { class: "tj-tag tj-tag-plan", text: "plan" }));
    if (isLeftover(part)) label.append(el("span", { class: "tj-tag", title: "No known convention: shown as the tracer recorded it, under its own name", text: "as recorded" }));
    if (text.loaded.includes("\r\n")) label.append(el("span", { class: "tj-tag", title: "Lines end with CR LF; both count in evidence", text: "CRLF" }));
    node.append(label);
    const isOpen = this.opened.has(key);
    const clip = isReasoning(part) ? "reasoning" : role === "system" ? "system" : "other";
    const isLong = text.length > TJ_CLIP[clip];
    let room = isOpen || !isLong ? Infinity : TJ_CLIPPED[clip];
    for (const [from, to, note, piece] of piecesOf(part, text.loaded)) {
      if (note !== null && !this.opened.has(`${key}:${piece}`)) {
        node.append(this.noteButton(note, `${key}:${piece}`, seq));
        continue;
      }
      const end = Math.min(to, from + room);
      if (end <= from && to > from) break;
      const host = el("div", { class: "tj-text" + (isMessage ? " tj-prose" : " tj-mono") + (layout ? " tj-md" : ""), dir: "auto", "data-seq": seq, "data-field": part.field });
      showText(host, text.loaded, { from, to: end, pretty: desk.isPretty, prose: isMessage, layout });
      node.append(host);
      room -= end - from;
    }
    for (const [digest, name] of mediaIn(text.loaded)) node.append(this.shown.get(`${key}:${digest}`) || this.mediaButton(key, digest, name));
    if (!part.text && part.text !== 0) return node;
    if (isLong || !text.isWhole) node.append(this.moreButton(seq, key, text, isOpen && text.isWhole, room));
    return node;
  }

  noteButton(note, key, seq) {
    return el("button", { class: "tj-note", title: "Show it here", text: note.replace(/^\((.*)\)$/, "$1"), on: { click: () => this.toggleOpen(key, seq) } });
  }

  /** Shows a picture, or a player of sound or film, from the trace's own bytes, when asked for. */
  mediaButton(key, digest, name) {
    const button = el("button", { class: "tj-more", title: "From the trace itself; nothing is loaded from other servers", text: "Show " + name });
    button.onclick = async () => {
      const blob = await this.desk.connection.fetchFrom(`media/${encodeURIComponent(this.desk.traceId)}/${digest}`, {}, (answer) => answer.blob());
      if (!blob) return;
      const node = mediaNode(blob, digest);
      this.shown.set(`${key}:${digest}`, node);
      button.replaceWith(node);
      if (node.controls) node.focus();
    };
    return button;
  }

  moreButton(seq, key, text, isOpen) {
    const button = el("button", { class: "tj-more", text: isOpen ? "Show less" : `Show all ${charactersText(text.length)}` });
    button.onclick = () => (isOpen ? this.toggleOpen(key, seq) : this.openPart(seq, key));
    return button;
  }

  async openPart(seq, key) {
    this.opened.add(key);
    if (this.desk.trace.hasCutText(seq)) await this.desk.trace.loadBlocks(seq, 1, true);
    this.redraw(seq);
  }

  async openAll(seq) {
    const block = this.desk.trace.blocks[seq];
    if (!block) return;
    if (this.desk.trace.hasCutText(seq)) await this.desk.trace.loadBlocks(seq, 1, true);
    const keys = block.parts.flatMap((part, number) => [`${seq}:${number}`, ...(part.pieces || []).map((_, piece) => `${seq}:${number}:${piece}`)]);
    const isOpen = keys.every((key) => this.opened.has(key));
    for (const key of keys) isOpen ? this.opened.delete(key) : this.opened.add(key);
    this.redraw(seq);
  }

  /** Brings a span to the top of the view. */
  show(seq, previous) {
    for (const each of [previous, seq]) this.blockNode(each)?.classList.toggle("tj-now", each === seq);
    const group = this.groupOf(seq);
    this.draw(group);
    for (const near of [this.groups[seq / TJ_GROUP - 1], this.groups[Math.floor(seq / TJ_GROUP) + 1]]) if (near && this.desk.trace.spans.size < 400) this.draw(near);
    this.scrollTo(this.blockNode(seq));
    this.justMoved = true;
    clearTimeout(this.movedTimer);
    this.movedTimer = setTimeout(() => (this.justMoved = false), 1500);
    this.blockNode(seq)?.classList.add("tj-now");
  }

  scrollTo(node, margin = 8) {
    if (!node) return;
    const delta = node.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top - margin;
    this.scroller.scrollTop += delta;
  }

  /** Opens the text that holds `evidence` as far as needed and brings it into view. */
  async showEvidence(evidence) {
    const seq = this.desk.trace.spans.seqOf.get(evidence.span_id);
    if (seq === undefined) return false;
    this.desk.place.select(seq, {});
    if (!this.desk.trace.blocks[seq]) await this.desk.trace.loadBlocks(seq, 1);
    if (this.desk.trace.hasCutText(seq)) await this.desk.trace.loadBlocks(seq, 1, true);
    const found = this.findEvidence(seq, evidence);
    if (!found) return false;
    const [key, host] = found;
    if (!host) {
      this.opened.add(key);
      const part = this.desk.trace.blocks[seq].parts[+key.split(":")[1]];
      (part?.pieces || []).forEach((_, piece) => this.opened.add(`${key}:${piece}`));
      if (key.split(":")[1].startsWith("r")) this.opened.add(seq + ":repeats");
      this.redraw(seq);
    }
    const range = this.rangesOf(evidence)[0];
    if (!range) return false;
    const box = range.getBoundingClientRect();
    const view = this.scroller.getBoundingClientRect();
    if (box.top < view.top + 40 || box.bottom > view.bottom - 20) this.scroller.scrollTop += box.top - view.top - 120;
    this.markAll();
    return true;
  }

  findEvidence(seq, evidence) {
    const block = this.desk.trace.blocks[seq];
    const parts = [...block.parts.map((part, n) => [part, `${seq}:${n}`]), ...block.repeats.map((r, n) => [repeatPart(r), `${seq}:r${n}`])];
    for (const [part, key] of parts) {
      if (evidence.field && part.field !== evidence.field) continue;
      if (!placeEvidence(this.desk.trace.textOf(part.text).loaded, evidence)) continue;
      return [key, this.rangesOf(evidence)[0] ? key : null];
    }
    return null;
  }

  hostsOf(seq, field) {
    const node = this.blockNode(seq);
    if (!node) return [];
    return [...node.querySelectorAll(".tj-text")].filter((host) => !field || host.dataset.field === field);
  }

  rangesOf(evidence) {
    const seq = this.desk.trace.spans.seqOf.get(evidence.span_id);
    if (seq === undefined) return [];
    return this.hostsOf(seq, evidence.field).flatMap((host) => {
      const place = placeEvidence(host.tjText, evidence);
      const range = place && rangeIn(host, place[0], place[1]);
      return range ? [range] : [];
    });
  }

  scheduleMarks() {
    if (this.marking) return;
    this.marking = requestAnimationFrame(() => {
      this.marking = 0;
      this.markAll();
    });
  }

  markAll() {
    const { desk } = this;
    const evidences = (errors) => errors.flatMap((error) => error.evidence).flatMap((evidence) => this.rangesOf(evidence));
    markRanges("tj-evidence", evidences(desk.work.state.errors.filter((error) => error.label_id !== desk.errorId)));
    markRanges("tj-evidence-now", evidences(desk.work.state.errors.filter((error) => error.label_id === desk.errorId)));
    markRanges("tj-hit", desk.tree && desk.tree.query.length > 1 ? this.hitRanges(desk.tree.query.toLowerCase()) : []);
  }

  hitRanges(query) {
    const ranges = [];
    for (const host of this.flow.querySelectorAll(".tj-text")) {
      const text = host.tjText.toLowerCase();
      if (text.length !== host.tjText.length) continue; // a few letters change length in lower case: no place to trust
      for (let at = text.indexOf(query, host.tjFrom); at >= 0 && at < host.tjTo && ranges.length < 500; at = text.indexOf(query, at + query.length)) {
        const range = rangeIn(host, at, at + query.length);
        if (range) ranges.push(range);
      }
    }
    return ranges;
  }

  async scrollToHit(seq) {
    if (!this.desk.trace.blocks[seq]) await this.desk.trace.loadBlocks(seq, 1);
    const query = this.desk.tree.query.toLowerCase();
    for (const host of this.hostsOf(seq)) {
      const at = host.tjText.toLowerCase().indexOf(query);
      const range = at >= 0 && rangeIn(host, at, at + query.length);
      if (!range) continue;
      const offset = range.getBoundingClientRect().top - this.scroller.getBoundingClientRect().top;
      if (offset < 40 || offset > this.scroller.clientHeight - 60) this.scroller.scrollTop += offset - 120;
      return;
    }
  }

  /** The selected text as evidence, or null. */
  selectedEvidence() {
    const chosen = selectedText(this.scroller);
    if (!chosen) return null;
    const { host, from, to } = chosen;
    const spanId = this.desk.trace.spans.id[+host.dataset.seq];
    return evidenceOf(host.tjText, from, to, { span_id: spanId, field: host.dataset.field });
  }

  /** A selection that has been taken, or that belongs to a span no longer in hand, must not be taken again. */
  dropSelection(exceptSeq = null) {
    const chosen = selectedText(this.scroller);
    if (chosen && (exceptSeq === null || +chosen.host.dataset.seq !== exceptSeq)) window.getSelection().removeAllRanges();
  }

  /** `[` and `]`: the selection a sentence longer (or shorter) at its start or end. */
  sentence(forward, grows) {
    const chosen = selectedText(this.scroller);
    const host = chosen ? chosen.host : this.principalHost();
    if (!host) return;
    const isOurs = chosen && this.stretch && chosen.host === this.stretch.host && chosen.from === this.stretch.from && chosen.to === this.stretch.to;
    const current = isOurs ? this.stretch.asked : chosen ? [chosen.from, chosen.to] : null; // marks at its end are hidden, not selected
    const next = this.nextSentence(host, current, forward, grows);
    if (!next) return;
    const range = rangeIn(host, next[0], next[1]);
    if (!range) return;
    window.getSelection().setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
    this.stretch = { ...selectedText(this.scroller), asked: next };
    const box = range.getBoundingClientRect();
    const view = this.scroller.getBoundingClientRect();
    const edge = forward ? box.bottom : box.top;
    if (edge > view.bottom - 24 || edge < view.top + 24) this.scroller.scrollTop += edge - view.top - this.scroller.clientHeight / 2;
  }

  nextSentence(host, current, forward, grows) {
    const text = host.tjText.slice(0, host.tjTo);
    if (current === null && host.tjFrom > 0) {
      const first = extendBySentence(text.slice(host.tjFrom), null, forward);
      return first && first.map((at) => at + host.tjFrom);
    }
    return (grows ? extendBySentence : shrinkBySentence)(text, current, forward);
  }

  principalHost() {
    const hosts = this.hostsOf(this.desk.place.current).filter((host) => host.tjMap.length);
    return hosts[hosts.length - 1] || null;
  }

  close() {
    this.watcher.disconnect();
    for (const name of ["tj-evidence", "tj-evidence-now", "tj-hit"]) markRanges(name, []);
  }
}

function repeatPart([position, ordinal, role, text]) {
  return { field: "message:" + position, label: role || "message", text, plan: false, pieces: null, from: ordinal };
}

/** The hashes of the pictures, sounds, films and files for which placeholders stand in a text, each with its name. */
export function mediaIn(text) {
  const places = [...text.matchAll(/\[((?:image|audio|video|file)\b[^\]\n]*), sha256 ([0-9a-f]{64})\]/g)];
  return [...new Map(places.map(([, about, digest]) => [digest, mediaName(about)]))].slice(0, 20);
}

function mediaName(about) {
  const kind = about.match(/^(image|audio|video)\b/) || about.match(/\b(image|audio|video)\//);
  return kind ? { image: "picture", audio: "audio player", video: "video player" }[kind[1]] : "file";
}

/** The picture or the player, by the kind that the server told from the bytes. */
function mediaNode(blob, digest) {
  const about = { class: "tj-media", src: URL.createObjectURL(blob) };
  const [kind] = blob.type.split("/");
  if (kind === "image") return el("img", { ...about, alt: "Picture " + digest.slice(0, 8) });
  return el(kind === "audio" ? "audio" : "video", { ...about, controls: true, "aria-label": `${kind === "audio" ? "Audio" : "Video"} ${digest.slice(0, 8)}` });
}

/** Whether a text is read as Markdown: what people and models wrote, not what a tool answered. */
export function isProse(part) {
  return part.field.startsWith("message:") && roleOf(part) !== "tool";
}

/** What the model thought, which is folded until someone opens it. */
export function isReasoning(part) {
  return /^message:\d+:reasoning$/.test(part.field);
}

/** A text that no dialect understood, under the name of its attribute. */
export function isLeftover(part) {
  return /^(attribute:|event:\d+:)/.test(part.field);
}

function roleOf(part) {
  if (part.field === "tools") return "system";
  if (part.field === "status_message" || part.label === "exception") return "error";
  if (!part.field.startsWith("message:")) return "io";
  const role = part.label.split(" ")[0].toLowerCase();
  return { system: "system", developer: "system", user: "user", assistant: "assistant" }[role] || (role.startsWith("tool") ? "tool" : "other");
}

/** Stretches of a part in UTF-16: `[from, to, note, number]`; the server counts in code points. */
function piecesOf(part, text) {
  if (!part.pieces) return [[0, text.length, null, 0]];
  return part.pieces.map(([start, end, note], number) => [unitAtCodePoint(text, start), unitAtCodePoint(text, end), note, number]);
}
