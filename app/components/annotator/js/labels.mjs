// The labels of one trace as values: operations, their inverses, undo and redo, what is missing.

export const TJ_IMPACTS = ["low", "medium", "high"];

export function emptyState() {
  return { revision: 0, errors: [], scores: {}, review: { status: "open", no_error: false, reason: "", revealed: false } };
}

/** A server's state with every key present. */
export function completeState(state) {
  const known = { ...emptyState(), ...(state || {}) };
  known.errors = [...(known.errors || [])];
  known.scores = { ...(known.scores || {}) };
  known.review = { ...emptyState().review, ...(known.review || {}) };
  known.seen = known.seen || [];
  return known;
}

/** `state` after one operation; a new value, the old one stays as it was. */
export function applyOperation(state, { kind, payload }) {
  switch (kind) {
    case "error.put": {
      const at = state.errors.findIndex((error) => error.label_id === payload.label_id);
      const errors = at < 0 ? [...state.errors, payload] : state.errors.map((old, i) => (i === at ? payload : old));
      return { ...state, errors };
    }
    case "error.delete":
      return { ...state, errors: state.errors.filter((error) => error.label_id !== payload.label_id) };
    case "score.put":
      return { ...state, scores: { ...state.scores, [payload.dimension]: payload } };
    case "review.put":
      return { ...state, review: { ...payload, revealed: state.review.revealed } };
    case "reveal":
      return { ...state, review: { ...state.review, revealed: true } };
    default:
      throw new Error("unknown operation " + kind);
  }
}

export function applyAll(state, operations) {
  return operations.reduce(applyOperation, state);
}

/** The operation that takes `operation` back, given the state before it. */
export function inverseOf(state, { kind, payload }) {
  if (kind === "error.put" || kind === "error.delete") {
    const before = state.errors.find((error) => error.label_id === payload.label_id);
    return before ? { kind: "error.put", payload: before } : { kind: "error.delete", payload: { label_id: payload.label_id } };
  }
  if (kind === "score.put") return { kind, payload: scoreOf(state, payload.dimension) };
  return { kind, payload: state.review };
}

/** What two states must share to be the same work: keys in one order, no bookkeeping. */
export function sortedState({ errors, scores, review }) {
  const score = ({ dimension, value, not_applicable, note, confidence }) => [dimension, value, not_applicable, note, confidence];
  return { errors: errors.map(canonical), scores: Object.keys(scores).sort().map((key) => score(scores[key])), review: [review.status, review.no_error, review.reason, review.revealed] };
}

function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== "object") return value;
  return Object.keys(value).sort().map((key) => [key, canonical(value[key])]);
}

/** A short name of a state: equal states have equal names. */
export function fingerprint(state) {
  const text = JSON.stringify(sortedState(state));
  let [low, high] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i++) {
    low = Math.imul(low ^ text.charCodeAt(i), 2654435761);
    high = Math.imul(high ^ text.charCodeAt(i), 1597334677);
  }
  return (low >>> 0).toString(36) + (high >>> 0).toString(36) + text.length.toString(36);
}

export function scoreOf(state, dimension) {
  return state.scores[dimension] || { dimension, value: null, not_applicable: false, note: "", confidence: null };
}

export function newErrorLabel(labelId, spanIds, evidence, phase) {
  return {
    label_id: labelId,
    span_ids: [...spanIds],
    dimensions: [],
    impact: null,
    category: null,
    description: "",
    evidence: [...evidence],
    phase,
  };
}

/** `list` without `item` if it is there, else with it, in the order of `order`. */
export function toggled(list, item, order) {
  const next = list.includes(item) ? list.filter((other) => other !== item) : [...list, item];
  return order ? next.sort((a, b) => order.indexOf(a) - order.indexOf(b)) : next;
}

/** What still keeps the item from being submitted, in the order in which it is asked for. */
export function missingFields(state, dimensions) {
  const missing = [];
  for (const [number, error] of state.errors.entries()) {
    const name = `Error ${number + 1}`;
    if (!error.span_ids.length) missing.push({ place: "error", label_id: error.label_id, field: "spans", short: `${name}: span`, message: `${name} has no span` });
    if (!error.dimensions.length) missing.push({ place: "error", label_id: error.label_id, field: "dimensions", short: `${name}: dimension`, message: `${name} has no dimension` });
    if (error.impact === null) missing.push({ place: "error", label_id: error.label_id, field: "impact", short: `${name}: impact`, message: `${name} has no impact` });
  }
  if (!state.errors.length && !state.review.no_error) {
    missing.push({ place: "none", short: "An error, or “No error in this trace”", message: "This trace has no labelled error: label one, or tick “No error in this trace”" });
  }
  for (const dimension of dimensions) {
    const score = scoreOf(state, dimension);
    if (score.value === null && !score.not_applicable) missing.push({ place: "score", dimension, short: dimension, message: `${dimension} has no score` });
  }
  return missing;
}

/** Undo and redo of one item. Steps with the same `merge` key (typing in one field) become one step. */
export class History {
  constructor(limit = 500) {
    this.past = [];
    this.future = [];
    this.limit = limit;
  }

  record(step) {
    const last = this.past[this.past.length - 1];
    this.future = [];
    if (last && step.merge && last.merge === step.merge) [last.undo, last.redo] = [spanning(step.redo.payload, last.undo), spanning(last.undo.payload, step.redo)];
    else this.past.push(step);
    if (this.past.length > this.limit) this.past.shift();
  }

  /** The steps as text, for a page that is opened again on the state of this `stamp`. */
  saved(stamp, limit = 200) {
    return JSON.stringify({ stamp, past: this.past.slice(-limit), future: this.future.slice(-limit) });
  }

  /** The steps of an earlier page; none where the work has changed since, or what was kept is no history. */
  static restored(text, stamp) {
    const history = new History();
    try {
      const kept = JSON.parse(text);
      if (kept.stamp === stamp) [history.past, history.future] = [kept.past.map(sealed), kept.future.map(sealed)];
    } catch {
      return new History();
    }
    return history;
  }

  /** The typing is over: what follows is a step of its own. */
  seal() {
    const last = this.past[this.past.length - 1];
    if (last) last.merge = null;
  }

  undo() {
    const step = this.past.pop();
    if (step) this.future.push(step);
    return step || null;
  }

  redo() {
    const step = this.future.pop();
    if (step) this.past.push(step);
    return step || null;
  }
}

/** The operation as one from `before`: a step of many keys goes from the first word to the last. */
function spanning(before, operation) {
  return before === undefined ? operation : { ...operation, before };
}

function sealed(step) {
  return { undo: step.undo, redo: step.redo, merge: null };
}
