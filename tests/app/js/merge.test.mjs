import assert from "node:assert/strict";
import test from "node:test";
import * as labels from "../../../app/components/annotator/js/labels.mjs";
import * as merge from "../../../app/components/annotator/js/merge.mjs";

const error = (id, more = {}) => ({ ...labels.newErrorLabel(id, ["s1"], [], "blind"), ...more });
const state = (more = {}) => labels.completeState({ errors: [error("e1")], ...more });
const on = (before, kind, payload) => ({ kind, payload, before: merge.subjectOf(before, { kind, payload }) });
const score = (value, more = {}) => ({ dimension: "LC", value, not_applicable: false, note: "", confidence: null, ...more });

/** Operations made one after another on `base`. */
function chain(base, ...acts) {
  let now = base;
  return acts.map(([kind, payload]) => {
    const operation = on(now, kind, payload);
    now = labels.applyOperation(now, operation);
    return operation;
  });
}

test("fields that only one machine changed are both kept, without a clash", () => {
  const base = state();
  const [mine] = chain(base, ["error.put", error("e1", { description: "mine" })]);
  const theirs = state({ errors: [error("e1", { impact: "high", dimensions: ["LC"] })] });
  const result = merge.rebasedAll([mine], theirs);
  assert.deepEqual(result.state.errors, [error("e1", { impact: "high", dimensions: ["LC"], description: "mine" })]);
  assert.deepEqual(result.clashes, []);
});

test("a field that both changed keeps what is here and tells both values, as typed to the end", () => {
  const base = state();
  const typed = chain(base, ["error.put", error("e1", { description: "mi" })], ["error.put", error("e1", { description: "mine" })]);
  const theirs = state({ errors: [error("e1", { description: "theirs" })] });
  const { state: after, clashes } = merge.rebasedAll(typed, theirs);
  assert.equal(after.errors[0].description, "mine");
  assert.equal(clashes.length, 1);
  assert.match(merge.clashText(clashes[0], "Error 1"), /here “mine”, on the other machine “theirs”/);
  assert.equal(labels.applyOperation(after, merge.takingTheirs(clashes[0], after)).errors[0].description, "theirs");
});

test("spans, dimensions and evidence of both machines are united, and what one removed is gone", () => {
  const base = state({ errors: [error("e1", { span_ids: ["s1", "s2"] })] });
  const [mine] = chain(base, ["error.put", error("e1", { span_ids: ["s2", "s3"] })]);
  const theirs = state({ errors: [error("e1", { span_ids: ["s1", "s2", "s4"] })] });
  assert.deepEqual(merge.rebasedAll([mine], theirs).state.errors[0].span_ids, ["s2", "s4", "s3"]);
});

test("what was deleted there and changed here stays, and the note says so", () => {
  const [mine] = chain(state(), ["error.put", error("e1", { description: "still here" })]);
  const { state: after, clashes } = merge.rebasedAll([mine], state({ errors: [] }));
  assert.equal(after.errors[0].description, "still here");
  assert.match(merge.clashText(clashes[0], "Error 1"), /deleted on the other machine. Kept: /);
});

test("what was changed here and laid on a state without the label is merged by field where the label is there again", () => {
  const [mine] = chain(state(), ["error.put", error("e1", { description: "typed" })]);
  const { operations } = merge.rebasedAll([mine], state({ errors: [] }));
  const { state: after, clashes } = merge.rebasedAll(operations, state({ errors: [error("e1", { description: "theirs", impact: "high" })] }));
  assert.deepEqual([after.errors[0].description, after.errors[0].impact], ["typed", "high"]);
  assert.match(merge.clashText(clashes[0], "Error 1"), /here “typed”, on the other machine “theirs”/);
});

test("what was changed there is not deleted from here", () => {
  const [mine] = chain(state(), ["error.delete", { label_id: "e1" }]);
  const { state: after, operations, clashes } = merge.rebasedAll([mine], state({ errors: [error("e1", { impact: "low" })] }));
  assert.deepEqual([after.errors.length, operations, clashes[0].field], [1, [null], "deleted"]);
  assert.deepEqual(merge.rebasedAll([mine], state()).state.errors, [], "the same label as seen here is deleted");
});

test("a score is one answer: a value here and n/a there never become both", () => {
  const [mine] = chain(state(), ["score.put", score(2)]);
  const { state: after, clashes } = merge.rebasedAll([mine], state({ scores: { LC: score(null, { not_applicable: true, note: "theirs" }) } }));
  assert.deepEqual(after.scores.LC, score(2, { note: "theirs" }));
  assert.match(merge.clashText(clashes[0], "Score LC"), /score: here 2, on the other machine n\/a/);
});

test("operations that had arrived already change nothing and clash with nothing", () => {
  const typed = chain(state(), ["error.put", error("e1", { description: "a" })], ["error.put", error("e1", { description: "ab" })], ["error.put", error("e2")]);
  const arrived = labels.applyAll(state(), typed);
  const { state: after, clashes } = merge.rebasedAll(typed, arrived);
  assert.deepEqual([after, clashes], [arrived, []]);
});

test("a submission is not sent when the other machine's changes leave something missing", () => {
  const base = state({ errors: [], review: { no_error: true } });
  const [mine] = chain(base, ["review.put", { status: "submitted", no_error: true, reason: "" }]);
  const { state: after, operations, clashes } = merge.rebasedAll([mine], state());
  assert.deepEqual([after.review.status, operations[0], clashes[0].field], ["open", null, "submit"]);
  assert.equal(merge.rebasedAll([mine], base).operations[0].payload.status, "submitted");
});

test("the form of a review keeps nothing that the server does not take", () => {
  const [mine] = chain(state(), ["review.put", { status: "open", no_error: true, reason: "", active_ms: 5 }]);
  const { operations } = merge.rebasedAll([mine], state({ review: { active_ms: 9 } }));
  assert.deepEqual(Object.keys(operations[0].payload).sort(), ["active_ms", "no_error", "reason", "status"]);
  assert.equal(operations[0].payload.active_ms, 9);
});

test("what another machine brought is told field by field, with both values", () => {
  const before = state({ scores: { LC: score(1) } });
  const after = state({ errors: [error("e1", { impact: "high" }), error("e2", { description: "new" })], scores: { LC: score(3) } });
  const texts = merge.differences(before, after).map((change) => merge.differenceText(change, change.operation.payload.label_id || "LC"));
  assert.deepEqual(texts, ["e1, impact: high (was nothing)", "e2 added: no dimension, no impact, “new”", "LC, score: 3 (was 1)"]);
});

test("an undone step leaves alone what another machine changed since", () => {
  const [mine] = chain(state(), ["error.put", error("e1", { impact: "high" })]);
  const undo = { kind: "error.put", payload: error("e1"), before: mine.payload };
  const now = state({ errors: [error("e1", { impact: "high", description: "theirs" })] });
  assert.deepEqual(merge.rebased(undo, now).operation.payload, error("e1", { description: "theirs" }));
});

test("undo and redo over a reload go step by step to the same states", () => {
  let now = labels.completeState(null);
  let history = new labels.History();
  const act = (kind, payload, step = null) => {
    const operation = on(now, kind, payload);
    history.record({ undo: { ...labels.inverseOf(now, operation), before: kind === "error.delete" ? null : payload }, redo: operation, merge: step });
    now = labels.applyOperation(now, operation);
  };
  const take = (step) => (now = labels.applyOperation(now, merge.rebased(step, now).operation));
  act("error.put", error("e1"));
  act("error.put", error("e1", { impact: "high" }));
  for (const description of ["w", "why"]) act("error.put", error("e1", { impact: "high", description }), "description:e1");
  const full = now;
  history = labels.History.restored(history.saved("stamp"), "stamp");
  for (const expected of [error("e1", { impact: "high" }), error("e1")]) {
    take(history.undo().undo);
    assert.deepEqual(now.errors, [expected]);
  }
  history = labels.History.restored(history.saved("stamp"), "stamp");
  for (let i = 0; i < 2; i++) take(history.redo().redo);
  assert.deepEqual(now, full);
});
