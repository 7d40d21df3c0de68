// The scores: 0 to 3 or not applicable for each dimension, confidence, note, and the rubric beside them.

import { el, meaningOf, replaceIn } from "./page.mjs";
import { fitHeight } from "./errors.mjs";
import { keyHint } from "./keys.mjs";
import { scoreOf } from "./labels.mjs";

const TJ_NOTE_PAUSE = 350;

export class Scores {
  constructor(desk) {
    this.desk = desk;
    this.host = desk.part("scores");
    this.row = 0;
    this.typing = null;
  }

  get dimension() {
    return this.desk.dimensions[this.row];
  }

  /** A change of the dimension in hand; undone like any other act. */
  change(changes, merge = null, key = this.dimension.key) {
    this.desk.work.act("score.put", { ...scoreOf(this.desk.work.state, key), ...changes }, merge);
  }

  set(value) {
    const score = scoreOf(this.desk.work.state, this.dimension.key);
    this.change({ value: score.value === value ? null : value, not_applicable: false });
  }

  /** An answer by key: on to the next dimension; one that is deleted stays in hand. */
  answer(act) {
    act();
    if (!this.desk.work.isLocked && isGiven(scoreOf(this.desk.work.state, this.dimension.key))) this.move(1);
  }

  toggleNotApplicable() {
    const score = scoreOf(this.desk.work.state, this.dimension.key);
    this.change({ value: null, not_applicable: !score.not_applicable });
  }

  setConfidence(value) {
    this.change({ confidence: value });
  }

  stepConfidence(step) {
    const now = scoreOf(this.desk.work.state, this.dimension.key).confidence;
    this.setConfidence(now === null ? 2 : Math.min(3, Math.max(1, now + step)));
  }

  move(step) {
    this.choose(Math.min(this.desk.dimensions.length - 1, Math.max(0, this.row + step)));
  }

  choose(row) {
    this.flushTyping();
    this.row = row;
    this.draw();
    this.host.querySelector(".tj-score-row.tj-now")?.scrollIntoView({ block: "nearest" });
  }

  describe() {
    this.host.querySelector("textarea")?.focus();
  }

  draw() {
    const { desk } = this;
    const drawn = [desk.work.state.scores, this.row, desk.work.isLocked, desk.work.phase, desk.submission.revealed];
    if (this.drawn && drawn.every((each, i) => each === this.drawn[i])) return;
    this.drawn = drawn;
    const focused = this.host.contains(document.activeElement) ? document.activeElement : null;
    if (this.isOnlyTyped(focused)) return;
    const hold = focused && focused.dataset.hold ? { id: focused.dataset.hold, from: focused.selectionStart, to: focused.selectionEnd } : null;
    const given = desk.dimensions.filter(({ key }) => isGiven(scoreOf(desk.work.state, key))).length;
    desk.part("scores-count").textContent = `${given} of ${desk.dimensions.length}`;
    replaceIn(this.host, el("div", { class: "tj-score-table", role: "group", "aria-label": "Scores" }, ...desk.dimensions.map((dimension, row) => this.scoreRow(dimension, row))), this.guide());
    if (hold) {
      const field = this.host.querySelector(`[data-hold="${hold.id}"]`);
      field?.focus({ preventScroll: true });
      if (field?.setSelectionRange && hold.from !== undefined && hold.from !== null) field.setSelectionRange(hold.from, hold.to);
    }
  }

  /** Whether nothing but the note in hand has changed: its field stays, with its own undo and its composition. */
  isOnlyTyped(field) {
    const { desk } = this;
    const { key } = this.dimension;
    const others = { ...desk.work.state.scores, [key]: { ...scoreOf(desk.work.state, key), note: "" } };
    const shape = JSON.stringify([others, key, desk.work.isLocked, desk.work.phase, Boolean(desk.submission.revealed)]);
    const isSame = shape === this.shape;
    this.shape = shape;
    return isSame && field?.dataset.hold === "note-" + key && field.value === scoreOf(desk.work.state, key).note;
  }

  scoreRow({ key, title }, row) {
    const score = scoreOf(this.desk.work.state, key);
    const choose = (act) => () => {
      this.row = row;
      act();
      this.draw();
    };
    const blind = this.desk.submission.revealed?.found.own_scores[key];
    const isChanged = blind !== undefined && (blind.value !== score.value || blind.not_applicable !== score.not_applicable);
    const was = (value) => isChanged && (value === "na" ? blind.not_applicable : blind.value === value);
    const choice = (value, label, isChosen, act, description) =>
      el("button", { class: "tj-score" + (was(value) ? " tj-was" : ""), role: "radio", "aria-checked": String(isChosen), disabled: this.desk.work.isLocked, text: label, title: was(value) ? description + ", your blind answer" : description, "aria-label": `${title}: ${description}`, "data-hold": `${key}-${value}`, "data-score": value, on: { click: choose(act) } });
    const values = [0, 1, 2, 3].map((value) => choice(value, value, score.value === value, () => this.set(value), `score ${value}`));
    values.push(choice("na", "n/a", score.not_applicable, () => this.toggleNotApplicable(), "not applicable"));
    const name = el("button", { class: "tj-score-name", title: meaningOf(key) || title, "data-hold": "name-" + key, on: { click: () => this.choose(row) } }, el("b", { text: key }), el("span", { text: title }));
    const sure = score.confidence === null ? null : el("span", { class: "tj-sure", title: `confidence ${score.confidence} of 3`, text: "•".repeat(score.confidence) });
    const after = isChanged ? el("span", { class: "tj-tag tj-tag-after", title: "Changed after the reveal; your blind answer stays stored", text: "blind " + (blind.not_applicable ? "n/a" : blind.value) }) : null;
    return el("div", { class: "tj-score-row" + (row === this.row ? " tj-now" : ""), "data-dimension": key }, name, after, sure, el("div", { class: "tj-score-choices", role: "radiogroup", "aria-label": title }, ...values));
  }

  /** The rubric's text of the dimension in hand, the given score's anchor set off, with note and confidence. */
  guide() {
    const { desk } = this;
    const { key, title, about, anchors } = this.dimension;
    const score = scoreOf(desk.work.state, key);
    const lines = anchors.map(([points, meaning]) =>
      el("div", { class: "tj-anchor" + (covers(points, score.value) ? " tj-now" : "") }, el("b", { text: points }), el("span", { text: meaning })),
    );
    const confidence = [1, 2, 3].map((value) =>
      el("button", { class: "tj-score", role: "radio", "aria-checked": String(score.confidence === value), disabled: desk.work.isLocked, text: value, "aria-label": `confidence ${value} of 3`, title: `${keyHint("lessSure", desk.keyboard.keyOverrides)} less, ${keyHint("moreSure", desk.keyboard.keyOverrides)} more confident`, "data-hold": "sure-" + value, on: { click: () => this.setConfidence(score.confidence === value ? null : value) } }),
    );
    const note = el("textarea", { class: "tj-field", dir: "auto", rows: 1, maxlength: 100000, placeholder: `Note on ${key} (${keyHint("describe", desk.keyboard.keyOverrides)})`, "aria-label": `Note on ${title}`, "data-hold": "note-" + key, disabled: desk.work.isLocked });
    note.value = score.note;
    note.oninput = () => {
      fitHeight(note);
      this.typed(key, note.value);
    };
    note.onblur = () => this.flushTyping();
    return el(
      "div",
      { class: "tj-guide" },
      el("div", { class: "tj-guide-head" }, el("b", { text: title }), el("span", { class: "tj-confidence", role: "radiogroup", "aria-label": "Confidence" }, el("span", { text: "confidence" }), ...confidence)),
      note,
      about ? el("p", { class: "tj-about", text: about }) : null,
      ...lines,
    );
  }

  typed(key, text) {
    clearTimeout(this.typing?.timer);
    this.typing = { key, text, timer: setTimeout(() => this.typingPaused(), TJ_NOTE_PAUSE) };
    this.desk.head.drawSaved();
  }

  typingPaused() {
    if (!this.typing) return;
    if (this.desk.isComposing) this.typed(this.typing.key, this.typing.text);
    else this.flushTyping();
  }

  flushTyping() {
    if (!this.typing) return;
    const { key, text, timer } = this.typing;
    clearTimeout(timer);
    this.typing = null;
    if (scoreOf(this.desk.work.state, key).note !== text) this.change({ note: text }, "note:" + key, key);
  }
}

function isGiven(score) {
  return score.value !== null || score.not_applicable;
}

function covers(points, value) {
  if (value === null) return false;
  const [low, high = low] = points.split("–").map(Number);
  return value >= Math.min(low, high) && value <= Math.max(low, high);
}
