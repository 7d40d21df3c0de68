import assert from "node:assert/strict";
import test from "node:test";
import { Outbox, unsentTraces } from "../../../app/components/annotator/js/outbox.mjs";

class Storage {
  constructor(items = new Map()) {
    this.items = items;
  }
  get length() {
    return this.items.size;
  }
  key(number) {
    return [...this.items.keys()][number] ?? null;
  }
  getItem(key) {
    return this.items.get(key) ?? null;
  }
  setItem(key, value) {
    this.items.set(key, value);
  }
  removeItem(key) {
    this.items.delete(key);
  }
}

/** A store as the contract has it: idempotent by id, stale when others came in between. */
class Store {
  constructor() {
    this.revision = 0;
    this.applied = [];
    this.answers = [];
  }
  answer(body) {
    const fresh = body.ops.filter((op) => !this.applied.includes(op.op_id));
    if (fresh.length && body.base_revision !== this.revision) return { status: 409, body: { revision: this.revision, state: { revision: this.revision, errors: ["theirs"] } } };
    for (const op of fresh) {
      this.applied.push(op.op_id);
      this.revision++;
    }
    return { status: 200, body: { revision: this.revision, applied: body.ops.map((op) => op.op_id) } };
  }
}

function rig(send, storage = new Storage()) {
  const timers = [];
  let now = 1000;
  const outbox = new Outbox({ storage, prefix: "tj:op:me:t:", notePrefix: "tj:note:me:t:", send, clock: () => now++, later: (act) => timers.push(act) && (() => timers.splice(timers.indexOf(act), 1)), dice: () => 0.5 });
  return { outbox, storage, timers };
}

const op = (id) => ({ op_id: id, kind: "score.put", payload: {}, client_time: "" });
/** Everything that waits for nothing but an answer is done: no timer of the outbox runs by itself (`rig`). */
const settle = () => new Promise((done) => setImmediate(done));

test("an operation is stored before it is sent and forgotten once acknowledged", async () => {
  const store = new Store();
  let heldWhileSending = 0;
  const { outbox, storage } = rig(async (body) => {
    heldWhileSending = storage.length;
    return store.answer(body);
  });
  outbox.add(op("a"));
  await settle();
  assert.equal(heldWhileSending, 1);
  assert.deepEqual([storage.length, outbox.pending, outbox.revision], [0, 0, 1]);
});

test("what was made while a batch was away goes in the next, in order", async () => {
  const store = new Store();
  const batches = [];
  let answer;
  const gate = new Promise((done) => (answer = done));
  const { outbox } = rig(async (body) => {
    batches.push(body.ops.map((each) => each.op_id));
    await gate;
    return store.answer(body);
  });
  for (const id of ["a", "b", "c"]) outbox.add(op(id));
  await settle();
  assert.deepEqual([batches, store.applied], [[["a"]], []]);
  answer();
  await settle();
  assert.deepEqual(batches, [["a"], ["b", "c"]]);
  assert.deepEqual(store.applied, ["a", "b", "c"]);
});

test("offline: everything is kept, retried later, and arrives once", async () => {
  const store = new Store();
  let isOnline = false;
  const { outbox, storage, timers } = rig(async (body) => {
    if (!isOnline) throw new TypeError("Failed to fetch");
    return store.answer(body);
  });
  for (const id of ["a", "b", "c"]) outbox.add(op(id));
  await settle();
  assert.deepEqual([outbox.pending, storage.length, timers.length], [3, 3, 1]);
  isOnline = true;
  timers.shift()();
  await settle();
  assert.deepEqual(store.applied, ["a", "b", "c"]);
  assert.equal(outbox.pending, 0);
});

test("an answer lost on the way makes no second effect and no false conflict", async () => {
  const store = new Store();
  let isLost = true;
  const { outbox, timers } = rig(async (body) => {
    const answer = store.answer(body);
    if (isLost) {
      isLost = false;
      throw new TypeError("connection reset");
    }
    return answer;
  });
  outbox.add(op("a"));
  await settle();
  outbox.add(op("b")); // made meanwhile: must not join the batch that may have arrived
  await settle();
  timers.splice(0).forEach((act) => act());
  await settle();
  assert.deepEqual(store.applied, ["a", "b"]);
});

test("a 500 keeps the operation and says so", async () => {
  const store = new Store();
  const answers = [{ status: 500, body: {} }, { status: 502, body: { error: "bad gateway" } }];
  const { outbox, timers } = rig(async (body) => answers.shift() || store.answer(body));
  outbox.add(op("a"));
  await settle();
  assert.equal(outbox.problem, "The server answered 500");
  timers.shift()();
  await settle();
  assert.equal(outbox.problem, "bad gateway");
  timers.shift()();
  await settle();
  assert.deepEqual([store.applied.length, outbox.pending, outbox.problem], [1, 0, null]);
});

test("operations of an earlier page are sent in their order", async () => {
  const store = new Store();
  const storage = new Storage();
  const dead = rig(async () => {
    throw new TypeError("offline");
  }, storage);
  for (const id of ["a", "b"]) dead.outbox.add(op(id));
  storage.setItem("tj:op:me:other:1", JSON.stringify(op("x")));
  storage.setItem("tj:op:me:t:broken", "{");
  const { outbox } = rig(async (body) => store.answer(body), storage);
  assert.deepEqual(outbox.operations().map((each) => each.op_id), ["a", "b"]);
  await outbox.flush();
  assert.deepEqual(store.applied, ["a", "b"]);
  assert.equal(storage.length, 2); // another trace's, and what could not be read
});

test("stale: what another machine stored is handed over and what is unsent goes on top of it at once", async () => {
  const store = new Store();
  store.answer({ base_revision: 0, ops: [op("other")] });
  const { outbox, storage } = rig(async (body) => store.answer(body));
  const states = [];
  outbox.meet = (state) => states.push(state);
  outbox.add(op("a"));
  outbox.add(op("b"));
  await settle();
  assert.deepEqual(states, [{ revision: 1, errors: ["theirs"] }]);
  assert.deepEqual([store.applied, outbox.pending, storage.length], [["other", "a", "b"], 0, 0]);
});

test("what is unsent is rewritten where it waits and in the storage, and what fell away is not sent", async () => {
  const store = new Store();
  store.answer({ base_revision: 0, ops: [op("other")] });
  const payloads = [];
  const { outbox, storage } = rig(async (body) => {
    payloads.push(body.ops.map(({ payload, before }) => [payload, before]));
    return store.answer(body);
  });
  let kept = null;
  outbox.meet = () => {
    outbox.rewrite(outbox.operations().map((each) => (each.op_id === "gone" ? null : { ...each, payload: "merged" })));
    kept = [...storage.items.values()].map((text) => JSON.parse(text).payload);
  };
  outbox.isSending = true;
  for (const id of ["a", "gone"]) outbox.add({ ...op(id), before: "for this page alone" });
  outbox.isSending = false;
  await outbox.flush();
  assert.deepEqual(kept, ["merged"]);
  assert.deepEqual(store.applied, ["other", "a"]);
  assert.deepEqual(payloads[1], [["merged", undefined]]);
});

test("a store that is always newer is asked again later, not without end", async () => {
  const { outbox, timers } = rig(async () => ({ status: 409, body: { revision: 7, state: {} } }));
  outbox.meet = () => {};
  outbox.add(op("a"));
  await settle();
  assert.deepEqual([outbox.pending, timers.length], [1, 1]);
});

test("one refused operation does not hold up the others and is not dropped", async () => {
  const store = new Store();
  const { outbox, storage } = rig(async (body) => {
    if (body.ops.some((each) => each.op_id === "bad")) return { status: 422, body: { error: "unknown span", remedy: "choose a span" } };
    return store.answer(body);
  });
  outbox.isSending = true; // collect the three into one batch
  for (const id of ["a", "bad", "c"]) outbox.add(op(id));
  outbox.isSending = false;
  await outbox.flush();
  assert.deepEqual(store.applied, ["a", "c"]);
  assert.deepEqual([outbox.parked.length, outbox.pending, storage.length], [1, 1, 1]);
  assert.equal(outbox.problem === null || outbox.problem.includes("unknown span"), true);
  assert.equal(outbox.parked[0].reason, "unknown span. choose a span");
});

test("a pass that has run out is renewed and nothing is lost", async () => {
  const store = new Store();
  let isFresh = false;
  const { outbox } = rig(async (body) => (isFresh ? store.answer(body) : { status: 401, body: {} }));
  outbox.add(op("a"));
  await settle();
  assert.equal(outbox.isWaitingForToken, true);
  isFresh = true;
  outbox.renewed();
  await settle();
  assert.deepEqual(store.applied, ["a"]);
});

test("a full storage still sends, and the loss of the safety net is known", async () => {
  const store = new Store();
  const storage = new Storage();
  storage.setItem = () => {
    throw new Error("QuotaExceededError");
  };
  const { outbox } = rig(async (body) => store.answer(body), storage);
  outbox.add(op("a"));
  await settle();
  assert.equal(outbox.isKeptLocally, false);
  assert.deepEqual(store.applied, ["a"]);
});

test("waits grow and stay below ten seconds and a quarter", async () => {
  const waits = [];
  const outbox = new Outbox({
    storage: new Storage(),
    prefix: "p",
    notePrefix: "n",
    send: async () => {
      throw new Error("offline");
    },
    later: (act, wait) => waits.push(wait) && (() => {}),
    dice: () => 1,
  });
  outbox.add(op("a"));
  await settle();
  for (let i = 0; i < 12; i++) await outbox.flush();
  assert.equal(waits.every((wait, i) => i === 0 || wait >= waits[i - 1]), true);
  assert.equal(Math.max(...waits), 12500);
});

test("200 operations through a bad line: none missing, none twice", async () => {
  const store = new Store();
  let calls = 0;
  const { outbox, timers } = rig(async (body) => {
    const turn = calls++ % 4;
    if (turn === 0) throw new TypeError("offline");
    const answer = store.answer(body);
    if (turn === 1) throw new TypeError("the answer was lost");
    return turn === 2 ? { status: 503, body: {} } : answer;
  });
  for (let i = 0; i < 200; i++) {
    outbox.add(op("op" + i));
    if (i % 7 === 0) await settle();
    timers.splice(0).forEach((act) => act());
  }
  for (let i = 0; i < 200 && outbox.pending; i++) {
    timers.splice(0).forEach((act) => act());
    await settle();
  }
  assert.deepEqual(store.applied, Array.from({ length: 200 }, (_, i) => "op" + i));
});

test("traces with unsent work are known by name, whatever their name holds", () => {
  const storage = new Storage();
  const away = async () => {
    throw new Error("offline");
  };
  for (const name of ["b:1/x", "a"]) new Outbox({ storage, prefix: `tj:op:me:${name}:`, notePrefix: `tj:note:me:${name}:`, send: away, later: () => () => {} }).add(op("an-operation"));
  storage.setItem("tj:op:you:c:1-1-op", "{}");
  storage.setItem("tj:keys:me", "{}");
  assert.deepEqual(unsentTraces(storage, "me"), ["a", "b:1/x"]);
});

test("nothing is refused while the account is deactivated, and all of it is sent once it is active", async () => {
  const store = new Store();
  let isClosed = true;
  const { outbox, storage } = rig(async (body) => (isClosed ? { status: 403, body: { error: "your account is deactivated", remedy: "ask", is_closed: true } } : store.answer(body)));
  for (const id of ["a", "b", "c"]) outbox.add(op(id));
  await settle();
  assert.deepEqual([outbox.parked.length, outbox.queue.length, storage.length, outbox.isClosed], [0, 3, 3, true]);
  assert.match(outbox.problem, /deactivated/);
  isClosed = false;
  outbox.nudge();
  await settle();
  assert.deepEqual([store.applied.length, storage.length, outbox.isClosed, outbox.problem], [3, 0, false, null]);
});
