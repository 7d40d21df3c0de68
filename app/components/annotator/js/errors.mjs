// The error cards: spans, dimensions, impact, category, evidence and description of each error.

import { CategoryField } from "./category.mjs";
import { el, meaningOf, renewIn, say } from "./page.mjs";
import { keyHint } from "./keys.mjs";
import { newErrorLabel, TJ_IMPACTS, toggled } from "./labels.mjs";

const TJ_TYPING_PAUSE = 350; // milliseconds without a key before a text is saved

export class ErrorCards {
  constructor(desk) {
    this.desk = desk;
    this.host = desk.part("errors");
    this.typing = null;
    this.categories = new CategoryField({
      groups: desk.data.categories,
      user: desk.user,
      storage: window.localStorage,
      pick: (error, category) => this.change(error, { category }),
      leave: () => desk.focusPane("errors"),
    });
    this.rows = new Map(); // label id -> the row that was made and what it was made of
  }

  get error() {
    return this.desk.work.state.errors.find((error) => error.label_id === this.desk.errorId) || null;
  }

  /** A label as stored is the whole label: every change puts all of it, as it is now and not as it was when drawn. */
  change({ label_id }, changes, merge = null) {
    const error = this.desk.work.state.errors.find((each) => each.label_id === label_id);
    if (!error || this.refuses(error)) return;
    this.desk.work.act("error.put", { ...error, ...changes }, merge);
  }

  refuses(error) {
    const isRefused = this.desk.work.phase === "revealed" && error.phase === "blind";
    if (isRefused) say(this.desk, "This label is blind and can no longer change. Press A to add another error, marked “after reveal”");
    return isRefused;
  }

  add() {
    const { desk } = this;
    const evidence = desk.reader.selectedEvidence();
    const span = evidence ? evidence.span_id : desk.trace.spans.id[desk.place.current];
    const error = newErrorLabel(desk.work.newId(), [span], evidence ? [evidence] : [], desk.work.phase);
    desk.errorId = error.label_id;
    if (!desk.work.act("error.put", error)) return;
    if (evidence) {
      desk.reader.dropSelection();
      desk.place.select(desk.trace.spans.seqOf.get(span), { keepScroll: true });
    }
    desk.focusPane("errors");
    this.scrollToCard();
  }

  scrollToCard() {
    requestAnimationFrame(() => this.host.querySelector(".tj-card.tj-now")?.scrollIntoView({ block: "nearest" }));
  }

  need() {
    if (this.error) return this.error;
    say(this.desk, this.desk.work.state.errors.length ? `Choose an error first (${this.keyOf("nextError")})` : `Press ${this.keyOf("newError")} to label an error on this span`);
    return null;
  }

  toggleDimension(dimension) {
    const error = this.need();
    if (error) this.change(error, { dimensions: toggled(error.dimensions, dimension, this.desk.dimensionKeys) });
  }

  setImpact(impact) {
    const error = this.need();
    if (error) this.change(error, { impact: error.impact === impact ? null : impact });
  }

  addEvidence() {
    const error = this.need();
    if (!error) return;
    const evidence = this.desk.reader.selectedEvidence();
    if (!evidence) return say(this.desk, `Select text in the conversation first: ${this.keyOf("growEnd")} selects a sentence`);
    const same = (other) => other.span_id === evidence.span_id && other.field === evidence.field && other.start === evidence.start && other.end === evidence.end;
    if (error.evidence.some(same)) return say(this.desk, "This evidence is already in the list");
    const spans = error.span_ids.includes(evidence.span_id) ? error.span_ids : [...error.span_ids, evidence.span_id];
    this.change(error, { evidence: [...error.evidence, evidence], span_ids: spans });
    this.desk.reader.dropSelection();
  }

  addSpan() {
    const error = this.need();
    const id = this.desk.trace.spans.id[this.desk.place.current];
    if (error && !error.span_ids.includes(id)) this.change(error, { span_ids: [...error.span_ids, id] });
  }

  removeSpan(id = this.desk.trace.spans.id[this.desk.place.current]) {
    const error = this.need();
    if (error && error.span_ids.includes(id)) this.change(error, { span_ids: error.span_ids.filter((other) => other !== id) });
  }

  delete() {
    const error = this.need();
    if (!error || this.refuses(error)) return;
    const at = this.desk.work.state.errors.indexOf(error);
    if (!this.desk.work.act("error.delete", { label_id: error.label_id })) return;
    const left = this.desk.work.state.errors;
    this.desk.errorId = left.length ? left[Math.min(at, left.length - 1)].label_id : null;
    this.desk.draw();
    say(this.desk, "Error deleted. Press U to undo");
  }

  next() {
    const { errors } = this.desk.work.state;
    if (!errors.length) return;
    const at = errors.findIndex((error) => error.label_id === this.desk.errorId);
    this.choose(errors[(at + 1) % errors.length].label_id);
  }

  choose(labelId) {
    this.categories.close();
    this.desk.errorId = labelId;
    this.desk.draw();
    this.desk.reader.markAll();
    this.scrollToCard();
    const error = this.error;
    const seq = error && error.span_ids.length ? this.desk.trace.spans.seqOf.get(error.span_ids[0]) : undefined;
    if (seq !== undefined) this.desk.place.select(seq, {});
  }

  describe() {
    if (this.need()) this.host.querySelector(".tj-card.tj-now textarea")?.focus();
  }

  draw() {
    const { desk } = this;
    const { errors } = desk.work.state;
    const focused = this.host.contains(document.activeElement) ? document.activeElement : null;
    if (this.isOnlyTyped(focused)) return;
    const hold = focused && focused.dataset.hold ? { id: focused.dataset.hold, from: focused.selectionStart, to: focused.selectionEnd } : null;
    desk.part("errors-count").textContent = errors.length;
    const cards = errors.map((error, number) => (error.label_id === desk.errorId ? this.card(error, number) : this.keptRow(error, number)));
    if (!errors.length) cards.push(this.firstSteps());
    cards.push(this.noError());
    renewIn(this.host, ...cards);
    if (hold) this.restore(hold);
  }

  firstSteps() {
    const key = (action) => el("kbd", { text: this.keyOf(action) });
    return el("p", { class: "tj-empty" }, "Select text that shows an error (", key("growEnd"), " selects a sentence) and press ", key("newError"), ", then a dimension (", key("dimension1"), "–", key("dimension7"), ") and an impact (", key("low"), " ", key("medium"), " ", key("high"), ").");
  }

  keyOf(action) {
    return keyHint(action, this.desk.keyboard.keyOverrides);
  }

  /** Whether nothing but the words in hand have changed: their field stays, with its own undo and its composition. */
  isOnlyTyped(field) {
    const { errors, review } = this.desk.work.state;
    const { errorId } = this.desk;
    const { isLocked, phase } = this.desk.work;
    const others = errors.map((error) => (error.label_id === errorId ? { ...error, description: "" } : error));
    const shape = JSON.stringify([others, errorId, isLocked, phase, review.no_error]);
    const isSame = shape === this.shape;
    this.shape = shape;
    return isSame && field?.dataset.hold === "description" && field.value === this.error?.description;
  }

  restore({ id, from, to }) {
    const field = this.host.querySelector(`[data-hold="${CSS.escape(id)}"]`);
    if (!field) return;
    field.focus({ preventScroll: true });
    if (field.setSelectionRange && from !== undefined && from !== null) field.setSelectionRange(from, to);
  }

  noError() {
    const { desk } = this;
    const box = el("input", { type: "checkbox", "data-hold": "no-error" });
    box.checked = desk.work.state.review.no_error;
    box.disabled = desk.work.isLocked || desk.work.phase === "revealed" || (desk.work.state.errors.length > 0 && !box.checked);
    box.onchange = () => this.toggleNoError();
    return el("label", { class: "tj-no-error", title: desk.work.state.errors.length ? "This trace has labelled errors" : null }, box, "No error in this trace");
  }

  toggleNoError() {
    const { desk } = this;
    if (desk.work.phase === "revealed") return say(desk, "This is part of your blind answer and can no longer change");
    if (desk.work.state.errors.length && !desk.work.state.review.no_error) {
      desk.draw();
      return say(desk, "This trace has labelled errors. Delete them before you tick the box");
    }
    desk.work.act("review.put", desk.work.reviewWith({ no_error: !desk.work.state.review.no_error }));
  }

  /** Labels are values: the row of one that has not changed is used again, so that 200 errors cost no more than one. */
  keptRow(error, number) {
    const kept = this.rows.get(error.label_id);
    const { phase } = this.desk.work;
    if (kept && kept.error === error && kept.number === number && kept.phase === phase) return kept.node;
    const node = this.row(error, number);
    this.rows.set(error.label_id, { error, number, phase, node });
    return node;
  }

  row(error, number) {
    const summary = error.evidence.length ? "“" + error.evidence[0].quote + "”" : error.description;
    return el(
      "button",
      { class: "tj-error-row" + (error.phase === "revealed" ? " tj-after" : ""), "data-hold": "row-" + error.label_id, "data-label": error.label_id, on: { click: () => this.choose(error.label_id) } },
      el("span", { class: "tj-number", text: number + 1 }),
      impactDot(error.impact),
      el("span", { class: "tj-dims" }, ...error.dimensions.map((dimension) => el("b", { text: dimension }))),
      el("span", { class: "tj-row-spans", text: this.ordinals(error).join(" ") }),
      el("span", { class: "tj-summary" }, el("bdi", { text: summary.slice(0, 200) })),
      this.isComplete(error) ? null : el("span", { class: "tj-tag tj-tag-missing", text: "incomplete" }),
      this.phaseTag(error),
    );
  }

  /** Once judges have been shown, every label says from which side of that it is. */
  phaseTag(error) {
    if (error.phase === "revealed") return el("span", { class: "tj-tag tj-tag-after", title: "Stored after the judges' findings were revealed", text: "after reveal" });
    return this.desk.work.phase === "revealed" ? el("span", { class: "tj-tag", title: "Stored before the judges' findings were revealed", text: "blind" }) : null;
  }

  isComplete(error) {
    return error.span_ids.length > 0 && error.dimensions.length > 0 && error.impact !== null;
  }

  ordinals(error) {
    return error.span_ids.map((id) => (this.desk.trace.spans.seqOf.has(id) ? "S" + (this.desk.trace.spans.seqOf.get(id) + 1) : id.slice(0, 8)));
  }

  card(error, number) {
    const { desk } = this;
    const isClosed = desk.work.isClosedLabel(error);
    const card = el(
      "section",
      { class: "tj-card tj-now" + (error.phase === "revealed" ? " tj-after" : ""), "data-label": error.label_id, "aria-label": `Error ${number + 1}` },
      el(
        "div",
        { class: "tj-card-head" },
        el("span", { class: "tj-number", text: number + 1 }),
        this.spanChips(error, isClosed),
        this.phaseTag(error),
        isClosed ? null : el("button", { class: "tj-quiet tj-delete", title: `Delete this error (${this.keyOf("deleteError")})`, "aria-label": `Delete error ${number + 1}`, text: "Delete", "data-hold": "delete", on: { click: () => this.delete() } }),
      ),
      isClosed && this.desk.work.phase === "revealed" ? el("p", { class: "tj-closed" }, "This blind label can no longer change, because the judges' findings have been revealed. ", el("kbd", { text: keyHint("newError", this.desk.keyboard.keyOverrides) }), " adds another error, marked “after reveal”.") : null,
      this.dimensions(error, isClosed),
      this.impacts(error, isClosed),
      this.evidenceList(error, isClosed),
      isClosed && !error.description ? null : this.description(error, isClosed),
      isClosed && !error.category ? null : this.category(error, isClosed),
    );
    return card;
  }

  spanChips(error, isClosed) {
    const ordinals = this.ordinals(error);
    const chips = error.span_ids.map((id, i) =>
      el(
        "span",
        { class: "tj-span-chip" },
        el("button", { class: "tj-link", title: id, text: ordinals[i], "data-hold": "span-" + id, on: { click: () => this.desk.place.selectId(id) } }),
        isClosed ? null : el("button", { class: "tj-x", "aria-label": `Remove span ${ordinals[i]}`, text: "×", "data-hold": "x-" + id, on: { click: () => this.removeSpan(id) } }),
      ),
    );
    if (!isClosed) chips.push(el("button", { class: "tj-quiet", "data-field": "spans", "data-hold": "add-span", title: `Add the selected span (${this.keyOf("addSpan")})`, text: "+ span", on: { click: () => this.addSpan() } }));
    return el("span", { class: "tj-span-chips" }, ...chips);
  }

  dimensions(error, isClosed) {
    const buttons = this.desk.dimensions.map(({ key, title }, number) =>
      el(
        "button",
        { class: "tj-toggle", "aria-pressed": String(error.dimensions.includes(key)), disabled: isClosed, title: `${meaningOf(key) || title} (${number + 1})`, "aria-label": title, "data-hold": "dim-" + key, on: { click: () => this.toggleDimension(key) } },
        el("i", { text: number + 1, "aria-hidden": "true" }),
        key,
      ),
    );
    return el("div", { class: "tj-toggles", role: "group", "aria-label": "Dimensions", "data-field": "dimensions" }, ...buttons);
  }

  impacts(error, isClosed) {
    const buttons = TJ_IMPACTS.map((impact) =>
      el(
        "button",
        { class: "tj-toggle tj-toggle-wide", "aria-pressed": String(error.impact === impact), disabled: isClosed, "data-hold": "impact-" + impact, title: `Impact ${impact} (${this.keyOf(impact)})`, on: { click: () => this.setImpact(impact) } },
        impactDot(impact),
        impact[0].toUpperCase() + impact.slice(1),
      ),
    );
    return el("div", { class: "tj-toggles", role: "group", "aria-label": "Impact", "data-field": "impact" }, ...buttons);
  }

  evidenceList(error, isClosed) {
    const items = error.evidence.map((evidence, number) =>
      el(
        "li",
        { class: "tj-quote" },
        el("button", { class: "tj-quote-text", dir: "auto", title: "Show this quote in the conversation", "data-hold": "quote-" + number, text: evidence.quote, on: { click: () => this.showEvidence(evidence) } }),
        el("span", { class: "tj-quote-place", text: this.placeText(evidence) }),
        isClosed ? null : el("button", { class: "tj-x", "aria-label": `Remove evidence ${number + 1}`, text: "×", "data-hold": "unquote-" + number, on: { click: () => this.change(error, { evidence: error.evidence.filter((other) => other !== evidence) }) } }),
      ),
    );
    if (!isClosed) items.push(el("li", {}, el("button", { class: "tj-quiet", "data-hold": "evidence", title: `Add the selected text as evidence (${this.keyOf("evidence")})`, text: `+ evidence from selection (${this.keyOf("growEnd")} selects a sentence, ${this.keyOf("evidence")} adds it)`, on: { mousedown: (event) => event.preventDefault(), click: () => this.addEvidence() } })));
    return el("ul", { class: "tj-quotes", "aria-label": "Evidence" }, ...items);
  }

  placeText(evidence) {
    const seq = this.desk.trace.spans.seqOf.get(evidence.span_id);
    return seq === undefined ? "" : "S" + (seq + 1);
  }

  async showEvidence(evidence) {
    if (!(await this.desk.reader.showEvidence(evidence))) say(this.desk, "This quote is not in the displayed text of the span");
  }

  description(error, isClosed) {
    const field = el("textarea", { class: "tj-field", dir: "auto", rows: 2, maxlength: 100000, placeholder: `What is wrong, and why (${this.keyOf("describe")})`, "aria-label": "Description", "data-hold": "description", disabled: isClosed });
    field.value = error.description;
    field.oninput = () => {
      fitHeight(field);
      this.typed(error.label_id, field.value);
    };
    field.onblur = () => this.flushTyping();
    if (error.description) requestAnimationFrame(() => fitHeight(field));
    return field;
  }

  typed(labelId, text) {
    clearTimeout(this.typing?.timer);
    this.typing = { labelId, text, timer: setTimeout(() => this.typingPaused(), TJ_TYPING_PAUSE) };
    this.desk.head.drawSaved();
  }

  /** Half-composed words (an input method shows its choices) are not saved, and their field is not touched. */
  typingPaused() {
    if (!this.typing) return;
    if (this.desk.isComposing) this.typed(this.typing.labelId, this.typing.text);
    else this.flushTyping();
  }

  /** Saves a description that is still being typed; the whole of one visit to the field is one step of undo. */
  flushTyping() {
    if (!this.typing) return;
    const { labelId, text, timer } = this.typing;
    clearTimeout(timer);
    this.typing = null;
    const error = this.desk.work.state.errors.find((each) => each.label_id === labelId);
    if (error && error.description !== text) this.change(error, { description: text }, "description:" + labelId);
  }

  category(error, isClosed) {
    return this.categories.names.length ? this.categories.draw(error, isClosed) : null;
  }

  chooseCategory() {
    if (this.need()) this.host.querySelector('.tj-card.tj-now [data-hold="category"]')?.focus();
  }
}

export function impactDot(impact) {
  return el("i", { class: "tj-dot tj-impact-" + (impact || "none"), role: "img", "aria-label": impact ? "impact " + impact : "no impact chosen", title: impact || "no impact chosen" });
}

export function fitHeight(field) {
  field.style.height = "auto";
  field.style.height = Math.min(220, field.scrollHeight + 2) + "px";
}
