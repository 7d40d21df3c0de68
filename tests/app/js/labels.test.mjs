import assert from "node:assert/strict";
import test from "node:test";
import * as labels from "../../../app/components/annotator/js/labels.mjs";

const error = (id, more = {}) => ({ ...labels.newErrorLabel(id, ["s1"], [], "blind"), ...more });
const put = (payload) => ({ kind: "error.put", payload });

test("every operation is undone by its inverse", () => {
  const before = labels.applyAll(labels.completeState(null), [put(error("e1", { impact: "low" }))]);
  const operations = [
    put(error("e1", { impact: "high" })),
    put(error("e2")),
    { kind: "error.delete", payload: { label_id: "e1" } },
    { kind: "score.put", payload: { dimension: "LC", value: 0, not_applicable: false, note: "", confidence: null } },
    { kind: "review.put", payload: { status: "open", no_error: true, reason: "" } },
  ];
  for (const operation of operations) {
    const after = labels.applyOperation(before, operation);
    const back = labels.applyOperation(after, labels.inverseOf(before, operation));
    assert.deepEqual(back.errors, before.errors, operation.kind);
    assert.deepEqual(back.review, before.review, operation.kind);
    assert.deepEqual(labels.scoreOf(back, "LC"), labels.scoreOf(before, "LC"), operation.kind);
  }
});

test("applying changes no older state", () => {
  const before = labels.completeState({ errors: [error("e1")] });
  const copy = structuredClone(before);
  labels.applyAll(before, [put(error("e1", { impact: "high" })), put(error("e2"))]);
  assert.deepEqual(before, copy);
});

test("an error that is put again keeps its place", () => {
  const state = labels.applyAll(labels.emptyState(), [put(error("e1")), put(error("e2")), put(error("e1", { impact: "low" }))]);
  assert.deepEqual(state.errors.map((each) => each.label_id), ["e1", "e2"]);
});

test("dimensions stay in the table's order however they are chosen", () => {
  assert.deepEqual(labels.toggled(labels.toggled([], "TC", ["LC", "TC"]), "LC", ["LC", "TC"]), ["LC", "TC"]);
  assert.deepEqual(labels.toggled(["LC", "TC"], "LC", ["LC", "TC"]), ["TC"]);
});

test("a score of 0 is a score, no score is missing, not applicable is an answer", () => {
  const scored = (score) => labels.applyAll(labels.completeState({ review: { no_error: true } }), [{ kind: "score.put", payload: { dimension: "LC", note: "", confidence: null, ...score } }]);
  assert.deepEqual(labels.missingFields(scored({ value: 0, not_applicable: false }), ["LC"]), []);
  assert.deepEqual(labels.missingFields(scored({ value: null, not_applicable: true }), ["LC"]), []);
  assert.equal(labels.missingFields(scored({ value: null, not_applicable: false }), ["LC"])[0].place, "score");
});

test("an incomplete error is named before the scores, field by field", () => {
  const state = labels.applyAll(labels.emptyState(), [put(error("e1", { span_ids: [] }))]);
  assert.deepEqual(labels.missingFields(state, ["LC"]).map((each) => each.field || each.place), ["spans", "dimensions", "impact", "score"]);
});

test("a trace without errors needs the tick", () => {
  assert.equal(labels.missingFields(labels.emptyState(), [])[0].place, "none");
});

test("a long typing is one step, the next visit another", () => {
  const history = new labels.History();
  history.record({ undo: "empty", redo: "a", merge: "description:e1" });
  history.record({ undo: "a", redo: "ab", merge: "description:e1" });
  history.seal();
  history.record({ undo: "ab", redo: "abc", merge: "description:e1" });
  assert.equal(history.undo().undo, "ab");
  const first = history.undo();
  assert.deepEqual([first.undo, first.redo], ["empty", "ab"]);
  assert.equal(history.undo(), null);
  assert.equal(history.redo().redo, "ab");
});

test("a new act ends what could be redone", () => {
  const history = new labels.History();
  history.record({ undo: 1, redo: 2 });
  history.undo();
  history.record({ undo: 3, redo: 4 });
  assert.equal(history.redo(), null);
});

const STATE = { ...labels.emptyState(), errors: [labels.newErrorLabel("e1", ["s"], [], "blind")], scores: { LC: labels.scoreOf(labels.emptyState(), "LC") } };

test("a reveal stays, whatever is said of the review after it", () => {
  const revealed = labels.applyOperation(STATE, { kind: "reveal", payload: {} });
  assert.equal(revealed.review.revealed, true);
  const later = labels.applyOperation(revealed, { kind: "review.put", payload: { status: "submitted", no_error: false, reason: "" } });
  assert.equal(later.review.revealed, true);
});

test("equal states have one labels.fingerprint, in whatever order their keys stand", () => {
  const turned = JSON.parse(JSON.stringify(STATE), (_, value) => (value && value.constructor === Object ? Object.fromEntries(Object.entries(value).reverse()) : value));
  assert.equal(labels.fingerprint(turned), labels.fingerprint(STATE));
  assert.equal(labels.fingerprint({ ...STATE, revision: 9 }), labels.fingerprint(STATE), "the revision is bookkeeping");
  const changed = labels.applyOperation(STATE, { kind: "error.put", payload: { ...STATE.errors[0], impact: "low" } });
  assert.notEqual(labels.fingerprint(changed), labels.fingerprint(STATE));
});

test("a history is taken up again on the same state only", () => {
  const history = new labels.History();
  history.record({ undo: { kind: "error.delete", payload: { label_id: "e1" } }, redo: { kind: "error.put", payload: STATE.errors[0] }, merge: "x" });
  const text = history.saved("stamp");
  assert.equal(labels.History.restored(text, "another").past.length, 0);
  assert.equal(labels.History.restored("{no history", "stamp").past.length, 0);
  const again = labels.History.restored(text, "stamp");
  assert.deepEqual(again.undo().undo, { kind: "error.delete", payload: { label_id: "e1" } });
  assert.equal(again.redo().merge, null, "typing after a reload is a step of its own");
});
