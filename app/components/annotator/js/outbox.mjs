// Operations on their way to the store: kept until acknowledged, sent in order, each counted once.

import { applyAll } from "./labels.mjs";

const TJ_BATCH = 50;
const TJ_STALE = 5; // answers in a row that another machine was faster, before the next try waits
const TJ_SLOWEST = 10000; // milliseconds between two tries at most

/**
 * Sends operations one batch after another and keeps each in `storage` until the server acknowledged it.
 *
 * `send({base_revision, ops})` gives `{status, body}` or throws when offline. A batch that may have arrived is
 * sent again with the same ids, so that the server can tell. `stored` is the newest state of the server known here,
 * that of `revision`: nothing older is ever laid under what is unsent. 409 (another machine was faster) hands what
 * it stored to `meet`, which lays what is unsent on top of it; 401 waits for `renewed`; an operation refused for its content (403, 413, 422) is parked and shown, never dropped by itself.
 */
export class Outbox {
  constructor({ storage, prefix, notePrefix, send, meet, changed = () => {}, clock = () => Date.now(), later = defaultLater, dice = Math.random }) {
    Object.assign(this, { storage, prefix, notePrefix, send, meet, changed, clock, later, dice });
    // operations of an earlier page that were not acknowledged
    this.queue = Array.from(this.remembered(prefix), ([key, op]) => ({ key, op }));
    this.notes = Array.from(this.remembered(notePrefix), ([key, entry]) => ({ key, entry }));
    this.batch = null;
    this.parked = [];
    this.revision = 0;
    this.stored = null;
    this.stale = 0; // answers in a row that another machine was faster
    this.failures = 0;
    this.problem = null;
    this.waiting = null;
    this.isSending = false;
    this.isWaitingForToken = false;
    this.isClosed = false; // the account is deactivated: nothing is refused for what it says
    this.savedAt = null;
    this.isKeptLocally = true;
    this.counter = 0;
  }

  /** What an earlier page stored under keys of this prefix, in its order: `[key, value]`. */
  *remembered(prefix) {
    const keys = [];
    for (let i = 0; i < this.storage.length; i++) {
      const key = this.storage.key(i);
      if (key && key.startsWith(prefix)) keys.push(key);
    }
    for (const key of keys.sort()) {
      try {
        yield [key, JSON.parse(this.storage.getItem(key))];
      } catch {
        continue; // not ours, or cut off while writing: it stays where it is
      }
    }
  }

  /** What another machine changed, until the person has closed the note: a reload does not take it away. */
  addNotes(entries) {
    for (const entry of entries) {
      const note = { key: `${this.notePrefix}${this.stamp()}-${this.dice().toString(36).slice(2)}`, entry };
      this.keep(note.key, entry);
      this.notes.push(note);
    }
  }

  dropNotes(isDropped) {
    for (const note of this.notes.filter(isDropped)) this.forget(note);
    this.notes = this.notes.filter((note) => !isDropped(note));
  }

  stamp() {
    return this.clock().toString(36).padStart(9, "0") + "-" + (this.counter++).toString(36).padStart(5, "0");
  }

  /** Takes a server's state in where it is newer than what is known; gives the newest. */
  learn(state) {
    if (!this.stored || state.revision >= this.revision) [this.stored, this.revision] = [state, state.revision];
    return this.stored;
  }

  get pending() {
    return this.queue.length + this.parked.length;
  }

  operations() {
    return [...this.queue, ...this.parked].map((item) => item.op);
  }

  add(op) {
    const key = this.prefix + this.stamp() + "-" + op.op_id;
    this.keep(key, op);
    this.queue.push({ key, op });
    this.changed();
    this.flush();
  }

  /** Sends what is there, now; returns when the queue is empty or the sending has to wait. */
  async flush() {
    if (this.isSending || this.isWaitingForToken || !this.queue.length) return;
    this.cancelTimer();
    this.isSending = true;
    try {
      while (this.queue.length && !this.isWaitingForToken) {
        if (!(await this.sendBatch())) break;
      }
    } finally {
      this.isSending = false;
      this.changed();
    }
  }

  async sendBatch() {
    this.batch ??= { base_revision: this.revision, items: this.queue.slice(0, this.single ? 1 : TJ_BATCH) };
    const { base_revision, items } = this.batch;
    const operations = items.map((item) => item.op);
    let answer;
    try {
      answer = await this.send({ base_revision, ops: operations.map(sentForm) });
    } catch (error) {
      return this.tryLater("Offline: " + (error && error.message ? error.message : "no connection"));
    }
    return this.handle(answer, items, operations);
  }

  handle({ status, body }, items, operations) {
    if (status === 200) return this.acknowledge(items, operations, body);
    if (status === 409) {
      this.batch = null;
      this.drop(items.filter((item) => (body.applied || []).includes(item.op.op_id))); // they had arrived: what came after them counts
      this.meet(this.learn(body.state));
      return ++this.stale < TJ_STALE || this.tryLater("Another machine is changing this trace");
    }
    if (status === 401) {
      this.batch = null;
      this.isWaitingForToken = true;
      this.problem = "The session token has expired";
      return false;
    }
    if (status === 403 && body && body.is_closed) return this.close(body);
    if (status === 403 || status === 413 || status === 422) return this.refuse(items, body, status);
    return this.tryLater((body && body.error) || `The server answered ${status}`);
  }

  acknowledge(items, operations, body) {
    this.drop(items);
    this.batch = null;
    this.single = false;
    this.takeAnswer(operations, body);
    this.stale = 0;
    this.failures = 0;
    this.problem = null;
    this.isClosed = false;
    this.savedAt = this.clock();
    this.changed();
    return true;
  }

  /** The batch arrived: plainly, or (`state`) with others' changes after it, which are met. */
  takeAnswer(operations, { revision, state }) {
    const isPlain = !state && revision > this.revision;
    if (!this.stored || isPlain) {
      this.stored = this.stored && { ...applyAll(this.stored, operations), revision };
      this.revision = revision;
    } else this.meet(state ? this.learn(state) : this.stored);
  }

  drop(items) {
    for (const item of items) this.forget(item);
    this.queue = this.queue.filter((item) => !items.includes(item));
  }

  refuse(items, body, status) {
    this.batch = null;
    if (items.length > 1) {
      this.single = true; // find the one that is refused; the others must still arrive
      return true;
    }
    const [item] = items;
    this.queue = this.queue.filter((other) => other !== item);
    this.parked.push(item);
    this.single = false;
    const why = (body && body.error) || `The server answered ${status}`;
    item.reason = body && body.remedy ? `${why}. ${body.remedy}` : why;
    this.problem = item.reason;
    this.changed();
    return true;
  }

  close({ error, remedy }) {
    this.batch = null;
    this.isClosed = true;
    this.problem = `${error}. ${remedy}`;
    this.changed();
    return false;
  }

  tryLater(problem) {
    this.failures++;
    this.problem = problem;
    const wait = Math.min(TJ_SLOWEST, 400 * 2 ** Math.min(this.failures - 1, 6)) * (0.75 + 0.5 * this.dice());
    this.waiting = this.later(() => {
      this.waiting = null;
      this.flush();
    }, wait);
    this.changed();
    return false;
  }

  cancelTimer() {
    if (this.waiting) this.waiting();
    this.waiting = null;
  }

  /** Try at once: the network is back, or the person asked. */
  nudge() {
    if (this.parked.length) {
      this.queue.push(...this.parked);
      this.parked = [];
    }
    this.flush();
  }

  renewed() {
    this.isWaitingForToken = false;
    this.problem = null;
    this.flush();
  }

  /** What is unsent becomes `operations`, one for one; null: the operation fell away. */
  rewrite(operations) {
    const items = [...this.queue, ...this.parked];
    for (const [at, item] of items.entries()) {
      if (operations[at] === null) this.forget(item);
      else if (operations[at] !== item.op) this.keep(item.key, (item.op = operations[at]));
    }
    const left = new Set(items.filter((_, at) => operations[at] !== null));
    [this.queue, this.parked] = [this.queue, this.parked].map((list) => list.filter((item) => left.has(item)));
    if (this.batch) this.batch.items = this.batch.items.filter((item) => left.has(item));
    if (!this.batch?.items.length) this.batch = null;
    this.changed();
  }

  keep(key, value) {
    try {
      this.storage.setItem(key, JSON.stringify(value));
    } catch {
      this.isKeptLocally = false; // storage full: still sent, but a reload before that would lose it
    }
  }

  forget(item) {
    try {
      this.storage.removeItem(item.key);
    } catch {
      return; // storage is gone: a later page sends it again, and the server knows its id
    }
  }
}

/** Traces of `user` with operations that no page has brought to the store yet. */
export function unsentTraces(storage, user) {
  const prefix = `tj:op:${user}:`;
  const names = new Set();
  for (let i = 0; i < storage.length; i++) {
    const key = storage.key(i);
    if (key && key.startsWith(prefix)) names.add(key.slice(prefix.length, key.lastIndexOf(":")));
  }
  return [...names].sort();
}

/** What the server is sent: `before` is for this page alone. */
function sentForm({ before, ...op }) {
  return op;
}

function defaultLater(action, wait) {
  const timer = setTimeout(action, wait);
  return () => clearTimeout(timer);
}
