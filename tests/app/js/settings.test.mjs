import assert from "node:assert/strict";
import { test } from "node:test";
import { folded, resized } from "../../../app/components/annotator/js/panes.mjs";
import { Settings } from "../../../app/components/annotator/js/settings.mjs";

/** A server that keeps one person's settings as the real one does. */
function server(stored = { revision: 0, keys: {}, pretty: false, panes: {} }) {
  const it = { stored, isAway: false, refusal: null };
  it.get = async () => (it.isAway ? null : structuredClone(it.stored));
  it.put = async ({ base_revision, ...values }) => {
    if (it.isAway) throw new TypeError("Failed to fetch");
    if (it.refusal) return it.refusal;
    if (base_revision !== it.stored.revision) return { status: 409, body: { error: "changed in another window" } };
    it.stored = { revision: it.stored.revision + 1, ...structuredClone(values) };
    return { status: 200, body: structuredClone(it.stored) };
  };
  return it;
}

function browser() {
  const kept = new Map();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, text) => kept.set(key, text) };
}

function settings(from, storage = browser(), problems = []) {
  return new Settings({ storage, user: "ann", get: from.get, put: from.put, problem: (message) => problems.push(message) });
}

test("a change holds at once and reaches the server", async () => {
  const from = server();
  const mine = settings(from);
  await mine.load();
  const sent = mine.set({ keys: { newError: "B" } });
  assert.deepEqual(mine.values.keys, { newError: "B" });
  await sent;
  assert.deepEqual(from.stored, { revision: 1, keys: { newError: "B" }, pretty: false, panes: {} });
});

test("another browser finds what was changed here", async () => {
  const from = server();
  await settings(from).set({ pretty: true });
  const other = settings(from);
  await other.load();
  assert.equal(other.values.pretty, true);
});

test("while the server is away the copy in this browser holds, and is sent later", async () => {
  const from = server();
  const storage = browser();
  from.isAway = true;
  await settings(from, storage).set({ keys: { newError: "B" } });
  const later = settings(from, storage);
  await later.load();
  assert.deepEqual(later.values.keys, { newError: "B" });
  from.isAway = false;
  await later.load();
  assert.deepEqual(from.stored.keys, { newError: "B" });
});

test("a change that meets another window's gives way and says so", async () => {
  const from = server();
  const problems = [];
  const mine = settings(from, browser(), problems);
  await mine.load();
  from.stored = { revision: 1, keys: { next: "B" }, pretty: false, panes: {} };
  await mine.set({ keys: { newError: "B" } });
  assert.deepEqual(mine.values.keys, { next: "B" });
  assert.deepEqual(problems, ["Settings not saved: changed in another window"]);
});

test("unsent work of this browser does not overwrite what was changed elsewhere since", async () => {
  const from = server();
  const storage = browser();
  from.isAway = true;
  await settings(from, storage).set({ keys: { newError: "B" } });
  from.isAway = false;
  from.stored = { revision: 3, keys: { next: "B" }, pretty: true, panes: {} };
  const later = settings(from, storage);
  await later.load();
  assert.deepEqual(later.values, { keys: { next: "B" }, pretty: true, panes: {} });
  assert.equal(from.stored.revision, 3);
});

test("what the server refuses is taken back", async () => {
  const from = server();
  const problems = [];
  const mine = settings(from, browser(), problems);
  from.refusal = { status: 422, body: { error: "J is taken" } };
  await mine.set({ keys: { newError: "J" } });
  assert.deepEqual(mine.values.keys, {});
  assert.deepEqual(problems, ["Settings not saved: J is taken"]);
});

test("two changes at once arrive in order", async () => {
  const from = server();
  const mine = settings(from);
  mine.set({ keys: { newError: "B" } });
  await mine.set({ pretty: true });
  await mine.sending;
  assert.deepEqual([from.stored.keys, from.stored.pretty], [{ newError: "B" }, true]);
  assert.equal(mine.isUnsent, false);
});

test("a copy that is no settings is left alone", () => {
  const storage = browser();
  storage.setItem("tj:settings:ann", "{broken");
  assert.deepEqual(settings(server(), storage).values, { keys: {}, pretty: true, panes: {} });
});

test("the widths of the panes go with the person", async () => {
  const from = server();
  await settings(from).set({ panes: { left: 30, side: 0 } });
  const other = settings(from);
  await other.load();
  assert.deepEqual(other.values.panes, { left: 30, side: 0 });
});

test("a pane is resized within bounds, folded when too narrow, and unfolded to its own width", () => {
  assert.deepEqual(resized({ side: 20 }, "left", 33.4), { side: 20, left: 33 });
  assert.deepEqual([resized({}, "left", 95).left, resized({}, "left", 4).left], [60, 0]);
  assert.deepEqual([folded({ left: 30 }, "left"), folded({ left: 0, side: 20 }, "left"), folded({}, "side")], [{ left: 0 }, { side: 20 }, { side: 0 }]);
});
