// Two machines, one person: operations are laid on top of what the other machine stored, field by field.

import { applyOperation, missingFields, scoreOf } from "./labels.mjs";

const TJ_UNITS = {
  "error.put": [["span_ids"], ["dimensions"], ["impact"], ["category"], ["description"], ["evidence"], ["phase"]],
  "score.put": [["value", "not_applicable"], ["note"], ["confidence"], ["phase"]],
  "review.put": [["status", "reason"], ["no_error"]],
}; // fields that only make sense together are taken together
const TJ_UNIT_NAMES = { span_ids: "spans", value: "score" };

/** What an operation changes in `state`: null for a label that is not there yet. */
export function subjectOf(state, { kind, payload }) {
  if (kind === "error.put" || kind === "error.delete") return state.errors.find((error) => error.label_id === payload.label_id) || null;
  if (kind === "score.put") return scoreOf(state, payload.dimension);
  return kind === "review.put" ? state.review : null;
}

/**
 * An operation made on `operation.before` as it is on `state`: only the fields that it changed.
 *
 * `operation` is null where nothing is left of it. A clash is a field that both changed: `here` stays, `there` is
 * what the other machine stored.
 */
export function rebased(operation, state) {
  const { kind, payload, before } = operation;
  const now = subjectOf(state, operation);
  if (before === undefined || kind === "reveal") return { operation, clashes: [] };
  if (kind === "error.delete") return rebasedDelete(operation, now);
  if (before === null) return { operation: { ...operation, payload: now || payload, before: now }, clashes: [] };
  if (now === null) return { operation, clashes: [{ operation, field: "label", here: payload, there: null }] };
  const [merged, clashes] = [{ ...now }, []];
  delete merged.revealed; // the server's alone
  if (kind === "review.put") merged.active_ms = Math.max(payload.active_ms || 0, now.active_ms || 0);
  for (const unit of TJ_UNITS[kind]) {
    if (isSameUnit(unit, before, payload)) continue;
    const isList = unit.length === 1 && Array.isArray(payload[unit[0]]);
    if (isList) merged[unit[0]] = mergedList(before[unit[0]], payload[unit[0]], now[unit[0]]);
    else for (const field of unit) merged[field] = payload[field];
    if (!isList && !isSameUnit(unit, before, now) && !isSameUnit(unit, payload, now)) clashes.push({ operation, field: unit[0], here: payload, there: now });
  }
  return { operation: { ...operation, payload: merged, before: now }, clashes };
}

/** A label that the other machine has changed is not deleted with a word it has not been seen in. */
function rebasedDelete(operation, now) {
  if (now === null) return { operation: null, clashes: [] };
  const isUnseen = operation.before !== null && TJ_UNITS["error.put"].some((unit) => !isSameUnit(unit, operation.before, now));
  if (!isUnseen) return { operation: { ...operation, before: now }, clashes: [] };
  return { operation: null, clashes: [{ operation, field: "deleted", here: null, there: now }] };
}

/** The operations on top of `state`, in their order: `{state, operations, clashes}`; null stands for one that fell away. */
export function rebasedAll(operations, state, dimensions = []) {
  const result = { state, operations: [], clashes: [] };
  for (const operation of operations) {
    const one = rebased(operation, result.state);
    const isEarly = isSubmitted(one.operation) && operation.before?.status !== "submitted" && missingFields(result.state, dimensions).length > 0;
    const clashes = isEarly ? [{ operation, field: "submit", here: null, there: null }] : one.clashes;
    const left = isEarly ? null : one.operation;
    if (left) result.state = applyOperation(result.state, left);
    result.operations.push(left);
    result.clashes.push(...clashes);
  }
  result.clashes = result.clashes.map((clash) => lastWord(clash, result.state)).filter(isStillClash);
  return result;
}

/** The clash with what is here in `state`: somebody typed on. */
export function lastWord(clash, state) {
  return clash.here === null ? clash : { ...clash, here: subjectOf(state, clash.operation) || clash.here };
}

function isStillClash({ operation, field, here, there }) {
  if (!here || !there) return true;
  return !isSameUnit(TJ_UNITS[operation.kind].find((unit) => unit[0] === field), here, there);
}

/** What differs between two states, one entry a field: what another machine brought. */
export function differences(before, after) {
  const found = [];
  const compare = (kind, payload) => {
    const [old, now] = [before, after].map((state) => subjectOf(state, { kind, payload }));
    if (!old || !now) {
      if (old !== now) found.push({ operation: { kind, payload }, field: "label", here: old, there: now });
      return;
    }
    for (const unit of TJ_UNITS[kind]) if (unit[0] !== "phase" && !isSameUnit(unit, old, now)) found.push({ operation: { kind, payload }, field: unit[0], here: old, there: now });
  };
  for (const label_id of new Set([...before.errors, ...after.errors].map((error) => error.label_id))) compare("error.put", { label_id });
  for (const dimension of new Set([...Object.keys(before.scores), ...Object.keys(after.scores)])) compare("score.put", { dimension });
  compare("review.put", {});
  return found;
}

/** The operation that takes the other machine's value of a clash; null where there is none to take. */
export function takingTheirs({ operation, field, here, there }, state) {
  const { kind, payload } = operation;
  if (field === "submit") return null;
  if (field === "deleted") return { kind: "error.delete", payload: { label_id: payload.label_id } };
  if (field === "label") return there === null ? { kind: "error.delete", payload: { label_id: payload.label_id } } : { kind, payload: there };
  const unit = TJ_UNITS[kind].find((fields) => fields[0] === field);
  const now = subjectOf(state, operation);
  return now && here && { kind, payload: { ...now, ...Object.fromEntries(unit.map((each) => [each, there[each]])) } };
}

/** One entry of the note in words, `state` being the labels now; null for a clash whose sides have become one. */
export function noteText({ clash, change }, state, place) {
  if (change) return differenceText(change, place);
  const last = lastWord(clash, state);
  return isStillClash(last) ? clashText(last, place) : null;
}

/** One entry in words, with both values. `place` names the label as the screen does. */
export function clashText({ field, here, there, operation }, place) {
  if (field === "submit") return "Not submitted: after the changes from the other machine, something is missing. Submit again when nothing is missing.";
  if (field === "deleted") return `${place}: deleted here, but changed on the other machine. Kept: ${labelText(there)}`;
  if (field === "label") return `${place}: changed here, deleted on the other machine. Kept: ${labelText(here)}`;
  return `${place}, ${TJ_UNIT_NAMES[field] || field}: here ${valueText(operation.kind, field, here)}, on the other machine ${valueText(operation.kind, field, there)}. The value from here is kept.`;
}

export function differenceText({ field, here, there, operation }, place) {
  if (field === "label") return there ? `${place} added: ${labelText(there)}` : `${place} deleted: ${labelText(here)}`;
  return `${place}, ${TJ_UNIT_NAMES[field] || field}: ${valueText(operation.kind, field, there)} (was ${valueText(operation.kind, field, here)})`;
}

function labelText({ dimensions, impact, description }) {
  return [dimensions.join(" ") || "no dimension", impact || "no impact", description && `“${description}”`].filter(Boolean).join(", ");
}

function valueText(kind, field, subject) {
  if (kind === "score.put" && field === "value" && subject.not_applicable) return "n/a";
  if (field === "status") return subject.reason ? `${subject.status} (“${subject.reason}”)` : subject.status;
  const value = subject[field];
  if (field === "evidence") return value.map((evidence) => `“${evidence.quote}”`).join(" ") || "none";
  if (Array.isArray(value)) return value.join(" ") || "none";
  if (value === null || value === "") return "nothing";
  return typeof value === "string" && field !== "impact" ? `“${value}”` : String(value);
}

function isSubmitted(operation) {
  return operation?.kind === "review.put" && operation.payload.status === "submitted";
}

function isSameUnit(unit, one, other) {
  return unit.every((field) => sameText(one[field]) === sameText(other[field]));
}

/** Additions and removals of one side on top of the other's list. */
function mergedList(before, mine, theirs) {
  const [was, wanted, there] = [before, mine, theirs].map((list) => new Set(list.map(sameText)));
  const kept = theirs.filter((item) => wanted.has(sameText(item)) || !was.has(sameText(item)));
  return [...kept, ...mine.filter((item) => !was.has(sameText(item)) && !there.has(sameText(item)))];
}

/** A value as text with its keys in one order: the server writes them in another. */
function sameText(value) {
  const ordered = (_, each) => (each !== null && typeof each === "object" && !Array.isArray(each) ? Object.fromEntries(Object.entries(each).sort()) : each);
  return JSON.stringify(value ?? null, ordered);
}
