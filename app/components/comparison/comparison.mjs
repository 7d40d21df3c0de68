// Pairs of reference errors and judge findings: listed, decided by mouse or key, over the text that both speak of.
// Trace text is set as text only. Decisions go to the API; the page is told once a batch of them has been stored.

const TJC_SETTLE = 700; // milliseconds after the last decision before the page is told
const TJC_ASK_AGAIN = 3000; // milliseconds after which a pass that did not come is asked for again
const TJC_PASS_PATIENCE = 20000; // milliseconds that a request waits for a fresh pass
const TJC_SIDES = { reference: "reference", judge: "judge", both: "both" };

function tjcEl(tag, { text, on, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  if (tag === "button") node.type = "button";
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  if (text !== undefined && text !== null) node.textContent = String(text);
  for (const [event, listener] of Object.entries(on || {})) node.addEventListener(event, listener);
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Bring `element` into the visible part of `box`; the page itself stays where it is. */
function tjcScrollTo(box, element) {
  if (!box || !element) return;
  const outer = box.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
}

class Comparison {
  constructor(root) {
    this.root = root;
    this.pairs = [];
    this.revision = -1;
    this.chosen = null;
    this.traceId = null;
    this.isMatching = false;
    this.message = "";
    this.texts = new Map();
    this.undoable = []; // what takes back each decision made on this trace, the newest last
    this.passWaiters = [];
    this.abort = new AbortController();
    document.addEventListener("keydown", (event) => this.key(event), { signal: this.abort.signal });
  }

  close() {
    this.abort.abort();
    clearTimeout(this.timer);
    clearTimeout(this.passTimer);
    this.passArrived(false);
  }

  take(component) {
    const { data, setTriggerValue } = component;
    this.trigger = setTriggerValue;
    const isFresh = data.token !== this.token;
    this.token = data.token;
    this.tokenS = data.token_s || 1200;
    if (isFresh) {
      this.passes = (this.passes || 0) + 1;
      this.root.dataset.pass = this.passes; // how many so far
      this.renewLater();
      this.passArrived(true);
    }
    this.base = data.base || "";
    this.reference = data.reference;
    this.judgeModel = data.judge_model;
    this.undecidedElsewhere = data.undecided_elsewhere || 0;
    const isNew = data.trace_id !== this.traceId || data.judge_key !== this.judgeKey;
    this.traceId = data.trace_id;
    this.judgeKey = data.judge_key;
    this.repeat = data.repeat || 0;
    if (isNew) {
      this.texts.clear();
      this.undoable = [];
      this.chosen = null;
      this.isMatching = false;
      this.message = "";
      this.revision = -1;
    }
    // a page drawn before the last decision comes later than its answer: it must not take the decision back
    const isAsHeld = () => data.revision === this.revision && JSON.stringify(data.pairs) === JSON.stringify(this.pairs);
    const isOnlyFresh = !isNew && isFresh && data.focus === this.focus && isAsHeld();
    if (isOnlyFresh) return; // another pass and nothing else: what is open on the page stays open
    if (isNew || (!this.isSaving && data.revision >= this.revision)) this.hold(data);
    const focused = data.focus && data.focus !== this.focus ? this.pairs.find((pair) => this.isFocus(pair, data.focus)) : null;
    this.focus = data.focus;
    const kept = this.pairs.find((pair) => pair.key === this.chosen);
    const first = this.pairs.find((pair) => !pair.decided) || this.pairs[0];
    this.chosen = (focused || kept || first || {}).key;
    this.draw();
    if (isNew || focused) this.reveal();
  }

  hold(held) {
    this.pairs = held.pairs;
    this.revision = held.revision;
  }

  isFocus(pair, focus) {
    return pair.key === focus || (pair.error && pair.error.id === focus);
  }

  get pair() {
    return this.pairs.find((pair) => pair.key === this.chosen);
  }

  // ---- drawing -----------------------------------------------------------------------------------------------

  draw() {
    const dark = getComputedStyle(this.root).getPropertyValue("--st-background-color");
    this.root.dataset.scheme = tjcIsDark(dark) ? "dark" : "light";
    const list = this.root.querySelector(".tjc-list");
    const scrolled = list ? list.scrollTop : 0;
    this.root.replaceChildren(this.sideNode(), this.mainNode());
    this.root.querySelector(".tjc-list").scrollTop = scrolled;
    this.showTexts();
  }

  sideNode() {
    const open = this.pairs.filter((pair) => !pair.decided).length;
    const bar = tjcEl("div", { class: "tjc-bar" },
      tjcEl("b", { text: this.pairs.length === 1 ? "1 row" : `${this.pairs.length} rows` }),
      tjcEl("span", { class: "tjc-quiet", text: open ? `${open} undecided` : "all decided", "data-tjc-open": open }),
      tjcEl("span", { class: "tjc-grow" }),
      this.button("Undo", "Z", () => this.undo(), { disabled: !this.undoable.length }),
      this.button("Next undecided", "U", () => this.next(), { title: `${this.undecidedElsewhere} undecided on other traces` }),
      this.button("Keys", "?", () => this.showKeys()),
    );
    const list = tjcEl("ul", { class: "tjc-list", role: "listbox", "aria-label": "Errors and findings" }, ...this.pairs.map((pair) => this.rowNode(pair)));
    return tjcEl("div", { class: "tjc-side" }, bar, this.pairs.length ? list : tjcEl("div", { class: "tjc-list tjc-empty", text: "Neither the annotator nor the judge reports an error: they agree that the trace has none, or the judge gave no verdict (see below)." }));
  }

  rowNode(pair) {
    const lines = [];
    if (pair.error) lines.push(tjcEl("div", { class: "tjc-line" }, tjcEl("i", { title: tjcMeanings(pair.error.dimensions), text: `Error ${pair.error.spans.join(", ")} ${pair.error.dimensions.join("+")} ${pair.error.impact}` }), pair.error.description || "(no description)"));
    if (pair.finding) lines.push(tjcEl("div", { class: "tjc-line" }, tjcEl("i", { title: tjcMeanings([tjcAspect(pair.finding)]), text: `Finding ${tjcPlaces(pair.finding)} ${tjcAspect(pair.finding)}` }), pair.finding.description || "(no description)"));
    return tjcEl("li", {
      class: "tjc-row", role: "option", "aria-selected": String(pair.key === this.chosen), "data-key": pair.key,
      "data-decided": pair.decided ? "yes" : "no",
      on: { click: () => this.choose(pair.key) },
    },
      tjcEl("span", { class: "tjc-state", "data-state": pair.state, title: TJ_TERMS[pair.state], text: pair.state }),
      tjcEl("div", { class: "tjc-what" }, ...lines),
      tjcEl("span", { class: "tjc-done", title: tjcDecision(pair), text: pair.decided ? (["missed", "not proposed yet"].includes(pair.state) ? "" : "✓") : "·" }),
    );
  }

  mainNode() {
    const pair = this.pair;
    if (!pair) return tjcEl("div", { class: "tjc-main" });
    return tjcEl("div", { class: "tjc-main" },
      this.actsNode(pair),
      tjcEl("p", { class: "tjc-means" }, tjcEl("b", { text: pair.state }), ` ${TJ_TERMS[pair.state] || ""}`),
      tjcEl("div", { class: "tjc-cards", tabindex: "0", role: "region", "aria-label": "Error and finding" }, this.referenceNode(pair), this.judgeNode(pair)),
      tjcEl("div", { class: "tjc-texts", tabindex: "0", role: "region", "aria-label": "Spans", "data-tjc-texts": "" }),
    );
  }

  actsNode(pair) {
    const acts = [];
    if (pair.error && pair.finding) {
      acts.push(this.button("Same error", "Y", () => this.decide("confirmed"), { "aria-pressed": String(pair.status === "confirmed"), title: TJ_TERMS.confirmed }));
      acts.push(this.button("Different errors", "N", () => this.decide("rejected"), { title: TJ_TERMS.rejected }));
    }
    if (pair.finding && !pair.error) {
      for (const [label, key, review] of TJC_REVIEWS) {
        acts.push(this.button(label, key, () => this.saveReview(review), { "aria-pressed": String(pair.review === review), title: TJ_TERMS[review] }));
      }
    }
    const partners = this.partners(pair);
    if (partners.length && (!pair.error || !pair.finding)) {
      acts.push(this.isMatching ? this.partnerNode(partners) : this.button("Match…", "M", () => this.matching(), { title: TJ_TERMS.match }));
    }
    acts.push(tjcEl("span", { class: "tjc-grow" }));
    const state = this.message ? tjcEl("span", { class: "tjc-error", role: "alert", text: this.message }) : tjcEl("span", { class: "tjc-quiet", title: TJ_TERMS[pair.review || pair.status], text: tjcDecision(pair) });
    return tjcEl("div", { class: "tjc-acts" }, ...acts, state);
  }

  /** The errors or findings that this one can be matched with: those that stand alone. */
  partners(pair) {
    return this.pairs.filter((other) => (pair.error ? other.finding && !other.error : other.error && !other.finding));
  }

  partnerNode(partners) {
    const select = tjcEl("select", { "aria-label": "Match with", on: { change: () => select.value && this.matchWith(select.value) } },
      tjcEl("option", { value: "", text: "Match with…" }),
      ...partners.map((other) => tjcEl("option", { value: other.key, text: tjcName(other) })),
    );
    queueMicrotask(() => select.focus());
    return select;
  }

  referenceNode(pair) {
    const { error } = pair;
    const card = tjcEl("div", { class: "tjc-card" }, tjcEl("h3", { title: TJ_TERMS.reference, text: `Annotator: ${this.reference}` }));
    if (!error) {
      card.append(tjcEl("p", { class: "tjc-quiet", text: "No error of this annotator matches the finding." }), ...this.candidateNodes(pair));
      return card;
    }
    card.append(
      tjcEl("p", { class: "tjc-quiet", text: [error.dimensions.join(" + "), error.impact + " impact", error.category, error.spans.join(", ")].filter(Boolean).join(" · ") }),
      tjcEl("p", { text: error.description || "(no description)" }),
      ...error.evidence.filter(Boolean).map((quote) => tjcEl("div", { class: "tjc-quote", text: quote })),
    );
    return card;
  }

  /** The annotator's errors at the finding's spans and next to them, a digit each. */
  candidateNodes(pair) {
    const known = this.candidates(pair);
    if (!known.length) return [tjcEl("p", { class: "tjc-quiet", text: "The annotator marked nothing at these spans or next to them." })];
    return [
      tjcEl("p", { class: "tjc-quiet", text: "Errors at the same and neighbouring spans. Same error?" }),
      ...known.map(({ error, pairs }, place) => {
        const text = `${error.spans.join(", ")} ${error.dimensions.join("+")} ${error.impact}: ${error.description || "(no description)"}`;
        const is = pairs.some((other) => other.finding) ? " (matched with another finding)" : "";
        return this.button(text + is, String(place + 1), () => this.matchError(error.id), { class: "tjc-candidate" });
      }),
    ];
  }

  candidates(pair) {
    return (pair.candidates || []).map((id) => {
      const pairs = this.pairs.filter((other) => other.error && other.error.id === id);
      return { error: (pairs[0] || {}).error, pairs };
    }).filter(({ error }) => error);
  }

  judgeNode(pair) {
    const finding = pair.finding;
    const card = tjcEl("div", { class: "tjc-card" }, tjcEl("h3", { title: TJ_TERMS.finding, text: `Judge: ${this.judgeModel}` }));
    if (!finding) {
      const why = pair.rejected ? `Missed: ${pair.rejected} proposed match${pair.rejected > 1 ? "es were" : " was"} rejected.` : "Missed: no finding of this judge matches the error.";
      card.append(tjcEl("p", { class: "tjc-quiet", text: why }));
      return card;
    }
    const cites = tjcEl("p", { class: "tjc-quiet" }, [tjcAspect(finding), finding.impact && finding.impact + " impact", finding.category].filter(Boolean).join(" · ") + " · cites ");
    finding.citations.forEach((citation, place) => {
      if (place) cites.append(", ");
      cites.append(citation.span ? tjcEl("span", { text: citation.span }) : tjcEl("span", { class: "tjc-bad", title: "This citation matches no span of the trace", text: `✕ ${citation.cite}` }));
    });
    if (!finding.citations.length) cites.append("no span");
    card.append(cites, tjcEl("p", { text: finding.description || "(no description)" }));
    if (finding.evidence) card.append(tjcEl("div", { class: "tjc-quote", text: finding.evidence }));
    if (finding.place) card.append(tjcEl("p", { class: finding.place === "verbatim" ? "tjc-quiet" : "tjc-bad", text: `Quote: ${finding.place}` }));
    if (pair.reasons.length) card.append(tjcEl("p", { class: "tjc-quiet", text: `Matched by: ${pair.reasons.join(", ")} · confidence ${pair.confidence.toFixed(2)}` }));
    return card;
  }

  async showTexts() {
    const pair = this.pair;
    if (!pair) return;
    if (!this.texts.has(pair.key)) {
      const traceId = this.traceId;
      const of = { label: pair.error ? pair.error.id : "", finding: pair.finding ? pair.finding.key : "" };
      const spans = await this.fetchJson(() => [`/api/compare/texts/${encodeURIComponent(traceId)}?${new URLSearchParams({ token: this.token, ...of })}`, {}]);
      if (traceId !== this.traceId) return;
      if (spans) this.texts.set(pair.key, spans.spans);
      else this.message = ""; // said where the text would stand
    }
    const host = this.root.querySelector("[data-tjc-texts]");
    if (!host || this.chosen !== pair.key) return;
    if (!this.texts.has(pair.key)) {
      host.replaceChildren(tjcEl("p", { class: "tjc-error", role: "alert", text: "The text could not be loaded. " }, tjcEl("button", { text: "Try again", on: { click: () => this.showTexts() } })));
      return;
    }
    host.replaceChildren(...(this.texts.get(pair.key) || []).map(tjcSpan));
    const mark = host.querySelector("mark");
    if (mark) host.scrollTop += mark.getBoundingClientRect().top - host.getBoundingClientRect().top - host.clientHeight / 3;
  }

  button(label, key, act, attributes = {}) {
    return tjcEl("button", { ...attributes, on: { click: act } }, label, tjcEl("kbd", { text: key }));
  }

  // ---- moving ------------------------------------------------------------------------------------------------

  choose(key) {
    this.chosen = key;
    this.isMatching = false;
    this.message = "";
    this.draw();
    this.reveal();
  }

  reveal() {
    tjcScrollTo(this.root.querySelector(".tjc-list"), this.root.querySelector('.tjc-row[aria-selected="true"]'));
  }

  step(by) {
    const place = this.pairs.findIndex((pair) => pair.key === this.chosen);
    const next = this.pairs[Math.min(this.pairs.length - 1, Math.max(0, place + by))];
    if (next) this.choose(next.key);
  }

  next() {
    const place = this.pairs.findIndex((pair) => pair.key === this.chosen);
    const after = [...this.pairs.slice(place + 1), ...this.pairs.slice(0, place)];
    const open = after.find((pair) => !pair.decided);
    if (open) this.choose(open.key);
    else this.trigger("act", { kind: "next", at: Date.now() });
  }

  matching() {
    this.isMatching = true;
    this.draw();
  }

  key(event) {
    if (!this.root.isConnected || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector('dialog[open], [aria-modal="true"]')) return;
    const target = event.composedPath()[0];
    if (target instanceof HTMLElement && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable)) return;
    const act = this.acts()[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  acts() {
    const pair = this.pair;
    const acts = { j: () => this.step(1), k: () => this.step(-1), u: () => this.next(), z: () => this.undo(), "?": () => this.showKeys() };
    if (!pair) return acts;
    if (pair.error && pair.finding) Object.assign(acts, { y: () => this.decide("confirmed"), n: () => this.decide("rejected") });
    if (pair.finding && !pair.error) for (const [, key, review] of TJC_REVIEWS) acts[key.toLowerCase()] = () => this.saveReview(review);
    if (!pair.error) this.candidates(pair).forEach(({ error }, place) => (acts[String(place + 1)] = () => this.matchError(error.id)));
    if ((!pair.error || !pair.finding) && this.partners(pair).length) acts.m = () => this.matching();
    return acts;
  }

  // ---- deciding ----------------------------------------------------------------------------------------------

  decide(status) {
    const pair = this.pair;
    return this.save({ label_id: pair.error.id, finding_key: pair.finding.key, status });
  }

  saveReview(review) {
    const pair = this.pair;
    return this.save({ finding_key: pair.finding.key, review: pair.review === review ? null : review });
  }

  matchError(labelId) {
    return this.save({ label_id: labelId, finding_key: this.pair.finding.key, status: "confirmed" });
  }

  /** Takes the newest decision of this page back: what stood before stands again. */
  undo() {
    if (this.undoable.length && !this.isSaving) return this.save(this.undoable[this.undoable.length - 1], { isUndo: true });
    return undefined;
  }

  showKeys() {
    const rows = TJC_KEYS.map(([key, act]) => tjcEl("tr", {}, tjcEl("td", {}, tjcEl("kbd", { text: key })), tjcEl("td", { text: act })));
    const shut = tjcEl("button", { text: "Close", on: { click: () => dialog.close() } });
    const dialog = tjcEl("dialog", { class: "tjc-dialog", "aria-label": "Keys", on: { close: () => dialog.remove() } }, tjcEl("table", {}, tjcEl("tbody", {}, ...rows)), shut);
    this.root.append(dialog);
    dialog.showModal();
    shut.focus();
  }

  matchWith(key) {
    const one = this.pair;
    const other = this.pairs.find((pair) => pair.key === key);
    const error = one.error || other.error;
    const finding = one.finding || other.finding;
    return this.save({ label_id: error.id, finding_key: finding.key, status: "confirmed" });
  }

  async save(decision, { isUndo = false } = {}) {
    if (this.isSaving) return;
    this.isSaving = true;
    const before = this.pairs.find((pair) => pair.finding && pair.finding.key === decision.finding_key);
    const place = this.pairs.findIndex((pair) => pair.key === this.chosen);
    const sent = { trace_id: this.traceId, reference: this.reference, judge_model: this.judgeModel, repeat: this.repeat, ...decision };
    const headers = { "Content-Type": "application/json" };
    const answer = await this.fetchJson(() => ["/api/compare/decide", { method: "POST", headers, body: JSON.stringify({ token: this.token, ...sent }) }]);
    this.isSaving = false;
    if (sent.trace_id !== this.traceId || sent.reference !== this.reference || sent.judge_model !== this.judgeModel || sent.repeat !== this.repeat) return; // stored; another page is shown now
    if (!answer) {
      this.message = `Not saved. ${this.message}`;
      return this.draw();
    }
    this.message = "";
    this.isMatching = false;
    if (isUndo) this.undoable.pop();
    else this.undoable.push(decision.status ? { ...decision, status: "undo" } : { finding_key: decision.finding_key, review: before ? before.review : null });
    this.hold(answer);
    if (isUndo) {
      const back = this.pairs.find((pair) => pair.finding && pair.finding.key === decision.finding_key && (!decision.label_id || !pair.error || pair.error.id === decision.label_id));
      this.chosen = (back || this.pairs[0] || {}).key;
      return this.drawSaved();
    }
    const decided = decision.status === "rejected" ? null : this.pairs.find((pair) => pair.finding && pair.finding.key === decision.finding_key);
    const open = this.pairs.slice(place).find((pair) => !pair.decided) || this.pairs.find((pair) => !pair.decided);
    this.chosen = (open || decided || this.pairs[Math.min(place, this.pairs.length - 1)] || {}).key;
    this.drawSaved();
  }

  /** What is stored now; the page is told a moment after the last decision. */
  drawSaved() {
    this.draw();
    this.reveal();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.trigger("act", { kind: "saved", at: Date.now() }), TJC_SETTLE);
  }

  // ---- the pass: short-lived, renewed while the page is open and the person is signed in -------------------------

  renewLater() {
    this.isAskingForPass = false;
    clearTimeout(this.passTimer);
    this.passTimer = setTimeout(() => this.renew(), this.tokenS * 500);
  }

  /** Asks until one comes: a word to a server that is away is lost. */
  renew() {
    clearTimeout(this.passTimer);
    if (this.abort.signal.aborted) return;
    this.isAskingForPass = true;
    this.trigger("act", { kind: "renew", at: Date.now() });
    this.passTimer = setTimeout(() => this.renew(), TJC_ASK_AGAIN);
  }

  /** True once another pass is here; false when none came in time. */
  freshPass() {
    if (!this.isAskingForPass) this.renew();
    return new Promise((done) => {
      this.passWaiters.push(done);
      setTimeout(() => done(false), TJC_PASS_PATIENCE);
    });
  }

  passArrived(isFresh) {
    for (const done of this.passWaiters.splice(0)) done(isFresh);
  }

  /** Asks (`request` gives path and options with the pass of now); once more with a fresh pass where it ran out. */
  async withPass(request) {
    const ask = () => {
      const [path, options] = request();
      return fetch(this.base + path, { ...options, signal: this.abort.signal });
    };
    const answer = await ask();
    return answer.status === 401 && (await this.freshPass()) ? ask() : answer;
  }

  async fetchJson(request) {
    try {
      const response = await this.withPass(request);
      const body = await response.json().catch(() => ({}));
      if (response.ok) return body;
      this.message = `${body.error || `The server answered ${response.status}`}. ${body.remedy || ""}`;
    } catch (error) {
      if (error.name !== "AbortError") this.message = "The server did not answer. Try again.";
    }
    return null;
  }
}

const TJC_REVIEWS = [
  ["Valid new error", "V", "valid new error"],
  ["False alarm", "F", "false alarm"],
  ["Duplicate", "D", "duplicate"],
];

const TJC_KEYS = [
  ["J", "next row"], ["K", "previous row"], ["U", "next undecided row, here or on the next trace"], ["Z", "undo the newest decision"],
  ["Y", "same error: confirm the match"], ["N", "different errors: reject the match"],
  ["1 to 5", "an unmatched finding describes this error of the annotator"], ["M", "match with an error or a finding of the list"],
  ["V", "valid new error"], ["F", "false alarm"], ["D", "duplicate"], ["?", "show these keys"],
];

/** The spans that a finding cites, as the desk calls them. */
function tjcPlaces(finding) {
  return finding.citations.map((citation) => citation.span).filter(Boolean).join(", ");
}

function tjcAspect(finding) {
  return finding.dimension || finding.rubric || "";
}

/** What the codes of dimensions mean, a line each. */
function tjcMeanings(codes) {
  return codes.map((code) => TJ_TERMS[code]).filter(Boolean).join("\n") || null;
}

function tjcName(pair) {
  const side = pair.error || pair.finding;
  const aspect = pair.error ? pair.error.dimensions.join("+") : tjcAspect(pair.finding);
  const text = `${aspect} · ${side.description || "(no description)"}`;
  return text.length > 90 ? text.slice(0, 89) + "…" : text;
}

function tjcDecision(pair) {
  if (pair.review) return pair.review;
  if (pair.status === "confirmed") return `confirmed by ${pair.author}`;
  if (pair.status === "proposed") return `proposed, confidence ${pair.confidence.toFixed(2)}`;
  if (pair.state === "unmatched") return "not reviewed";
  return pair.rejected ? "match rejected" : "";
}

function tjcSpan(span) {
  const title = tjcEl("h4", { text: span.header });
  if (span.reference) title.append(tjcEl("span", { class: "tjc-chip", "data-side": "reference", text: "annotator" }));
  if (span.judge) title.append(tjcEl("span", { class: "tjc-chip", "data-side": "judge", text: "judge" }));
  const node = tjcEl("div", { class: "tjc-span", "data-span": span.span_id }, title);
  for (const part of span.parts) {
    const text = tjcEl("pre", { class: "tjc-text" });
    for (const [piece, side] of part.segments) {
      if (typeof piece === "number") text.append(tjcEl("span", { class: "tjc-gap", text: `\n… ${piece.toLocaleString("en")} characters not shown …\n` }));
      else if (TJC_SIDES[side]) text.append(tjcEl("mark", { "data-side": side, text: piece }));
      else text.append(document.createTextNode(piece));
    }
    node.append(tjcEl("div", { class: "tjc-label", text: part.label }), text);
  }
  return node;
}

function tjcIsDark(color) {
  const probe = document.createElement("canvas").getContext("2d");
  if (!probe || !color.trim()) return false;
  probe.fillStyle = color.trim();
  const hex = probe.fillStyle;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

const tjcMounted = new WeakMap();

export default function (component) {
  const root = component.parentElement.querySelector("[data-tjc]");
  if (!tjcMounted.has(root)) tjcMounted.set(root, new Comparison(root));
  const comparison = tjcMounted.get(root);
  comparison.take(component);
  return () => {
    comparison.close();
    tjcMounted.delete(root);
  };
}
