// The labels of this person and trace: what the screen shows, what undo knows, what is on its way to the store.

import { isTyping } from "./keys.mjs";
import { applyOperation, completeState, fingerprint, History, inverseOf } from "./labels.mjs";
import { differences, rebased, rebasedAll, subjectOf } from "./merge.mjs";
import { Outbox } from "./outbox.mjs";
import { recall, remember, say } from "./page.mjs";

const tjOutboxes = new Map(); // they go on sending when the page shows another trace
const tjHistories = new Map();

export class Work {
  constructor(desk) {
    this.desk = desk;
    this.later = null; // what another machine's changes make of the labels, while a field is being typed in
  }

  start() {
    this.outbox = this.openOutbox();
    this.state = this.startState();
    this.setHistory(tjHistories.get(this.desk.user + this.desk.traceId) || this.keptHistory());
  }

  openOutbox() {
    const name = this.desk.user + " " + this.desk.traceId;
    const known = tjOutboxes.get(name);
    const send = (body) => this.desk.connection.post("ops", { token: this.desk.data.token, trace_id: this.desk.traceId, ...body });
    const outbox = known || new Outbox({ storage: window.localStorage, prefix: `tj:op:${this.desk.user}:${this.desk.traceId}:`, notePrefix: `tj:note:${this.desk.user}:${this.desk.traceId}:`, send });
    outbox.send = send;
    outbox.meet = (state) => this.meet(completeState(state));
    outbox.changed = () => this.outboxChanged();
    outbox.isWaitingForToken = false; // the pass of this desk is new
    tjOutboxes.set(name, outbox);
    return outbox;
  }

  /** Whether the judges' findings have been shown: what is labelled from then on is marked. */
  get phase() {
    return this.state.review.revealed ? "revealed" : "blind";
  }

  /** What the server holds, with what has not reached it on top. */
  startState() {
    const state = completeState(this.desk.data.state); // the page may give an older one than this tab has seen
    return { ...this.onTopOf(this.outbox.learn(state)).state, seen: state.seen };
  }

  get isLocked() {
    return this.desk.data.read_only || (this.state.review.status !== "open" && this.phase !== "revealed");
  }

  /** Blind labels are closed once the judges' errors have been seen. */
  isClosedLabel(error) {
    return this.isLocked || (this.phase === "revealed" && error.phase === "blind");
  }

  newId() {
    return crypto.randomUUID ? crypto.randomUUID() : [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** One act of the person: shown, remembered for undo, and on its way to the store. */
  act(kind, payload, merge = null) {
    if (this.isLocked && kind !== "review.put") {
      say(this.desk, this.desk.data.read_only ? "This page is read-only" : "This trace is finished. Reopen it to change labels");
      return false;
    }
    const operation = { kind, payload, before: subjectOf(this.state, { kind, payload }) };
    const undo = { ...inverseOf(this.state, operation), before: kind === "error.delete" ? null : payload };
    this.history.record({ undo, redo: operation, merge });
    this.perform(operation);
    return true;
  }

  perform({ kind, payload, before = subjectOf(this.state, { kind, payload }) }) {
    if (kind === "score.put") payload = { ...payload, phase: this.phase };
    const operation = { kind, payload, before };
    this.state = applyOperation(this.state, operation);
    const sent = this.later ? this.performLater(operation) : operation;
    if (sent) {
      const form = kind === "review.put" ? reviewForm(sent.payload) : sent.payload;
      this.outbox.add({ op_id: this.newId(), ...sent, payload: form, client_time: new Date().toISOString() });
    }
    if (this.outbox.notes.length) this.desk.note.draw(); // it says what is here now
    this.keepHistorySoon();
    this.desk.draw();
  }

  /** The operation on what another machine stored, which the screen does not show yet. */
  performLater(operation) {
    const { state, operations, clashes } = rebasedAll([operation], this.later, this.desk.dimensionKeys);
    this.later = state;
    this.desk.note.add(clashes.map((clash) => ({ clash })));
    return operations[0];
  }

  setHistory(history) {
    this.history = history;
    tjHistories.set(this.desk.user + this.desk.traceId, history);
  }

  /** Undo reaches back over a reload of this tab, as long as nothing else has changed the work since. */
  keptHistory() {
    return History.restored(recall(this.historyName, null, window.sessionStorage), fingerprint(this.state));
  }

  get historyName() {
    return `tj:history:${this.desk.user}:${this.desk.traceId}`;
  }

  keepHistorySoon() {
    clearTimeout(this.historyTimer);
    this.historyTimer = setTimeout(() => this.keepHistory(), 400);
  }

  keepHistory() {
    clearTimeout(this.historyTimer);
    remember(this.historyName, this.history.saved(fingerprint(this.state)), window.sessionStorage);
  }

  undo() {
    this.flushTyping();
    this.history.seal();
    const step = this.isLocked ? null : this.history.undo();
    if (!step) return say(this.desk, "Nothing to undo");
    this.performStep(step.undo);
  }

  redo() {
    const step = this.isLocked ? null : this.history.redo();
    if (!step) return say(this.desk, "Nothing to redo");
    this.performStep(step.redo);
  }

  /** A step changes the fields that it changed when it was made, and no others. */
  performStep(step) {
    const { operation, clashes } = rebased(step, this.state);
    this.desk.note.add(clashes.map((clash) => ({ clash })));
    if (operation) this.perform(operation);
    this.showStep(step);
  }

  showStep({ kind, payload }) {
    if (kind === "error.put") this.desk.errorId = payload.label_id;
    if (kind === "error.delete" && this.desk.errorId === payload.label_id) this.desk.errorId = this.state.errors[0]?.label_id || null;
    if (kind === "score.put") this.desk.scores.row = Math.max(0, this.desk.dimensionKeys.indexOf(payload.dimension));
    this.desk.draw();
  }

  flushTyping() {
    this.desk.cards.flushTyping();
    this.desk.scores.flushTyping();
  }

  reviewWith(changes) {
    this.desk.time.count();
    return { ...this.state.review, active_ms: Math.round(this.desk.time.activeMs), ...changes };
  }

  async drained(patience) {
    this.outbox.flush();
    for (const end = Date.now() + patience; Date.now() < end && !this.desk.signal.aborted; ) {
      if (!this.outbox.pending) return true;
      if (this.outbox.parked.length) return false;
      await new Promise((done) => setTimeout(done, 25));
    }
    return this.outbox.pending === 0;
  }

  outboxChanged() {
    if (this.desk.signal.aborted) return;
    this.desk.head.drawSaved();
    if (this.outbox.isWaitingForToken && !this.desk.connection.isAskingForPass) this.desk.connection.renew();
  }

  /** Another machine was faster: what is unsent here goes on top of what it stored. */
  meet(state) {
    const result = this.onTopOf(state);
    if (!this.desk.signal.aborted) this.arrive(result.state, result.clashes);
  }

  onTopOf(state) {
    const result = rebasedAll(this.outbox.operations(), state, this.desk.dimensionKeys);
    this.outbox.rewrite(result.operations);
    this.outbox.addNotes(result.clashes.map((clash) => ({ clash })));
    return result;
  }

  /** The labels as they are now with the other machine's changes; the screen follows once no field is typed in. */
  arrive(state, clashes = []) {
    const isTold = ({ operation, field }) => field === "label" && clashes.some((clash) => clash.operation.payload.label_id === operation.payload.label_id);
    const changes = differences(this.later || this.state, state).filter((change) => !isTold(change));
    this.later = state;
    this.desk.note.add(changes.map((change) => ({ change })));
    this.settle();
  }

  /** Whether somebody writes here, or reads a dialog: nothing on the screen is replaced. */
  get isInUse() {
    const field = document.activeElement;
    return this.desk.isComposing || this.desk.part("dialog").open || Boolean(this.desk.cards?.typing || this.desk.scores?.typing) || (this.desk.root.contains(field) && isTyping(field));
  }

  settle() {
    if (!this.later || this.isInUse) return;
    const isNews = this.later.review.revealed && !this.state.review.revealed;
    this.state = this.later;
    this.later = null;
    if (!this.state.errors.some((error) => error.label_id === this.desk.errorId)) this.desk.errorId = this.state.errors[0]?.label_id || null;
    if (isNews && !this.desk.submission.revealed) this.desk.submission.loadRevealed();
    this.desk.draw();
  }

  dropRefused() {
    for (const item of this.outbox.parked) this.outbox.forget(item);
    this.outbox.parked = [];
    this.outbox.problem = null;
    this.desk.head.drawSaved();
    say(this.desk, "Refused changes deleted. Reload the page to see the saved labels");
  }

  /** Another machine or tab has gone on with this work and nothing is unsent here: what is stored is shown. */
  takeNewer(state) {
    if (!this.desk.reader || this.outbox.pending || this.outbox.isSending || state.revision <= this.outbox.revision) return;
    this.arrive(this.outbox.learn(state));
  }
}

function reviewForm({ status, no_error, reason, active_ms }) {
  return { status, no_error, reason, active_ms: active_ms ?? null };
}

/** Whether what `user` left unsent on a trace goes to the store by itself: without a pass nothing goes until it is opened. */
export function isSending(user, traceId) {
  const outbox = tjOutboxes.get(user + " " + traceId);
  return Boolean(outbox?.pending) && !outbox.isWaitingForToken;
}
