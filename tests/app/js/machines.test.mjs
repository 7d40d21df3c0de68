// Two machines, one person, a model of the server: requests and answers get lost or come late, pages reload, the
// desk is made anew with a state of long ago. Whatever the order, screens end as the store is and nothing typed is lost.

import assert from "node:assert/strict";
import test from "node:test";
import { applyOperation, completeState, newErrorLabel } from "../../../app/components/annotator/js/labels.mjs";
import { differences, noteText, rebasedAll, subjectOf } from "../../../app/components/annotator/js/merge.mjs";
import { Outbox } from "../../../app/components/annotator/js/outbox.mjs";

const ERROR = "e1";

/** Small numbers that repeat for a seed. */
function dice(seed) {
  let state = seed >>> 0;
  return (sides) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return ((state ^ (state >>> 13)) >>> 0) % sides;
  };
}

/** The store of `apply_ops`: idempotent by id, stale when others came after the base. */
class Server {
  constructor() {
    this.log = [];
    this.state = completeState({ revision: 0 });
    this.given = [this.state];
  }
  answer({ base_revision, ops }) {
    const ours = new Set(ops.map((op) => op.op_id));
    const known = this.log.filter((id) => ours.has(id));
    const fresh = ops.filter((op) => !known.includes(op.op_id));
    if (fresh.length && this.log.slice(base_revision).some((id) => !ours.has(id))) return { status: 409, body: { revision: this.log.length, state: this.state, applied: known } };
    for (const op of fresh) {
      this.log.push(op.op_id);
      this.state = { ...applyOperation(this.state, op), revision: this.log.length };
    }
    this.given.push(this.state);
    return { status: 200, body: { revision: this.log.length, applied: [...ours], state: known.length ? this.state : null } };
  }
}

class Storage extends Map {
  get length() {
    return this.size;
  }
  key(number) {
    return [...this.keys()][number] ?? null;
  }
  getItem(key) {
    return this.get(key) ?? null;
  }
  setItem(key, value) {
    this.set(key, value);
  }
  removeItem(key) {
    this.delete(key);
  }
}

/** A browser with a desk in it: what `work.mjs` does with labels, without a screen. */
class Machine {
  constructor(name, server, roll) {
    Object.assign(this, { name, server, roll, storage: new Storage(), count: 0, clock: 0, wire: [] });
    this.reload();
  }
  /** A page is opened: what is on the wire may still arrive, its answer finds nobody. */
  reload() {
    for (const request of this.wire) request.answer = request.fail = () => {};
    this.timers = [];
    const send = (body) => new Promise((resolve, reject) => this.wire.push({ body, answer: resolve, fail: () => reject(new Error("lost")) }));
    this.outbox = new Outbox({ storage: this.storage, prefix: "p:", notePrefix: "n:", send, meet: (state) => this.meet(state), clock: () => 1000 + this.clock++, later: (act) => (this.timers.push(act), () => (this.timers = this.timers.filter((other) => other !== act))), dice: () => 0.5 });
    this.mount(this.server.state);
  }
  /** The desk is made with a state that the server has once given. */
  mount(state) {
    this.state = this.onTopOf(this.outbox.learn(state));
    this.outbox.flush();
  }
  onTopOf(state) {
    const result = rebasedAll(this.outbox.operations(), state);
    this.outbox.rewrite(result.operations);
    this.outbox.addNotes(result.clashes.map((clash) => ({ clash })));
    return result.state;
  }
  meet(state) {
    const before = this.state;
    this.state = this.onTopOf(state);
    this.outbox.addNotes(differences(before, this.state).map((change) => ({ change })));
  }
  /** What the note says, whole. */
  note() {
    return this.outbox.notes.map(({ entry }) => noteText(entry, this.state, "Error 1")).join("\n");
  }
  put(changes) {
    const old = this.state.errors.find((error) => error.label_id === ERROR);
    if (old) this.act("error.put", { ...old, ...changes });
  }
  act(kind, payload) {
    const operation = { kind, payload, before: subjectOf(this.state, { kind, payload }) };
    this.state = applyOperation(this.state, operation);
    this.outbox.add({ op_id: `${this.name}${this.count++}`, ...operation });
  }
  /** The oldest request reaches the server or not; its answer reaches the page or not. */
  network(fate) {
    const request = this.wire.shift();
    if (!request) return this.timers.shift()?.();
    const answer = fate === 0 ? null : this.server.answer(structuredClone(request.body));
    return answer && fate !== 1 ? request.answer(structuredClone(answer)) : (request.fail(), request.answer(null));
  }
}

const turn = () => new Promise((done) => setImmediate(done));

async function settled(...machines) {
  for (let round = 0; round < 60; round++) {
    for (const machine of machines) machine.network(2);
    await turn();
  }
  for (const machine of machines) {
    assert.equal(machine.outbox.pending, 0, "everything has arrived");
    if (machine.server.state.revision > machine.outbox.revision) machine.meet(machine.outbox.learn(machine.server.state)); // `takeNewer`
  }
}

async function play(seed, steps, hands) {
  const roll = dice(seed);
  const server = new Server();
  const [here, there] = ["a", "b"].map((name) => new Machine(name, server, roll));
  here.act("error.put", newErrorLabel(ERROR, ["s1"], [], "blind"));
  await settled(here, there);
  const typed = { a: "", b: "" };
  for (let step = 0; step < steps; step++) {
    const machine = roll(2) ? here : there;
    const deed = roll(8);
    if (deed < 3) hands(machine, step, roll, typed);
    else if (deed < 6) machine.network(roll(4));
    else if (deed === 6) machine.mount(server.given[roll(server.given.length)]);
    else if (roll(3) === 0) machine.reload();
    await turn();
  }
  await settled(here, there);
  return { server, machines: [here, there], typed };
}

test("what one machine types and the other chooses is stored whole, in every order of network, reload and remount", async () => {
  for (let seed = 1; seed <= 150; seed++) {
    let impact = null;
    const hands = (machine, step, roll, typed) => {
      if (machine.name === "a") machine.put({ description: (typed.a += ` w${step}`) });
      else if (roll(2)) machine.put({ impact: (impact = ["low", "medium", "high"][roll(3)]) });
      else machine.act("score.put", { dimension: "LC", value: roll(4), not_applicable: false, note: "", confidence: null });
    };
    const { server, machines, typed } = await play(seed, 60, hands);
    const [stored] = server.state.errors;
    assert.deepEqual([stored.description, stored.impact], [typed.a, impact], `seed ${seed}`);
    for (const machine of machines) assert.deepEqual(machine.state.errors, server.state.errors, `seed ${seed}, screen of ${machine.name}`);
  }
});

test("where both type, one text is stored whole on both screens, and the other stands in a note over every reload", async () => {
  for (let seed = 1; seed <= 300; seed++) {
    const overwritten = new Set(); // texts that somebody saw and typed over
    const hands = (machine, step, _, typed) => {
      overwritten.add(machine.state.errors[0]?.description);
      machine.put({ description: (typed[machine.name] = `${machine.name} until ${step}.`) });
    };
    const { server, machines, typed } = await play(seed, 60, hands);
    const [stored] = server.state.errors;
    for (const machine of machines) machine.reload();
    await settled(...machines);
    const lost = [typed.a, typed.b].filter((text) => text && text !== stored.description && !overwritten.has(text));
    for (const text of lost) assert.ok(machines.some((machine) => machine.note().includes(`“${text}”`)), `seed ${seed}: “${text}” is on no screen, “${stored.description}” is stored`);
    assert.ok(["", typed.a, typed.b].includes(stored.description) && (stored.description || !(typed.a + typed.b)), `seed ${seed}: ${stored.description} of ${JSON.stringify(typed)}`);
    for (const machine of machines) assert.deepEqual(machine.state.errors, server.state.errors, `seed ${seed}, screen of ${machine.name}`);
  }
});
