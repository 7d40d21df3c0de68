import assert from "node:assert/strict";
import test from "node:test";
import { isTyping, keyConflict, keysOf, keyTable, pressedKey, TJ_KEYS } from "../../../app/components/annotator/js/keys.mjs";

const press = (key, code = "", more = {}) => pressedKey({ key, code, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more });

test("no key has two meanings", () => {
  const keys = TJ_KEYS.flatMap((entry) => entry.keys);
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(keyTable().size, keys.length);
});

test("R and C are left to Streamlit", () => {
  assert.equal(keyTable().has("R"), false);
  assert.equal(keyTable().has("C"), false);
});

test("letters are read with and without shift, whatever caps lock does", () => {
  assert.equal(press("j", "KeyJ"), "J");
  assert.equal(press("J", "KeyJ"), "J");
  assert.equal(press("J", "KeyJ", { shiftKey: true }), "Shift+J");
});

test("a Russian or Arabic keyboard acts by the key's place", () => {
  assert.equal(press("о", "KeyJ"), "J");
  assert.equal(press("ش", "KeyA"), "A");
});

test("digits act on a French keyboard too", () => {
  assert.equal(press("&", "Digit1"), "1");
  assert.equal(press("7", "Numpad7"), "7");
});

test("brackets by AltGr are brackets; other Alt and Ctrl presses are no shortcut", () => {
  assert.equal(press("[", "Digit8", { altKey: true }), "[");
  assert.equal(press("j", "KeyJ", { altKey: true }), null);
  assert.equal(press("a", "KeyA", { ctrlKey: true }), null);
  assert.equal(press("Enter", "Enter", { ctrlKey: true }), "Ctrl+Enter");
  assert.equal(press("Enter", "Enter", { metaKey: true }), "Ctrl+Enter");
});

test("writing through an input method is never a shortcut", () => {
  assert.equal(press("j", "KeyJ", { isComposing: true }), null);
  assert.equal(press("Process", "KeyJ"), null);
});

test("a key can be given away, and its old one no longer acts", () => {
  const table = keyTable({ newError: "B" });
  assert.equal(table.get("B"), "newError");
  assert.equal(table.has("A"), false);
  assert.deepEqual(keysOf("newError", { newError: "B" }), ["B"]);
});

test("conflicts are refused: taken, reserved, fixed", () => {
  assert.match(keyConflict("newError", "J"), /used by “Next span”/);
  assert.match(keyConflict("newError", "R"), /reserved/);
  assert.match(keyConflict("newError", "1"), /reserved/);
  assert.match(keyConflict("submit", "B"), /cannot be changed/);
  assert.equal(keyConflict("newError", "A"), null);
  assert.equal(keyConflict("newError", "B"), null);
  assert.equal(keyConflict("undo", "A", { newError: "B" }), null);
});

test("a stored remapping that conflicts does not take another's key", () => {
  const table = keyTable({ newError: "J" });
  assert.equal(table.get("J"), "next");
  assert.equal(table.get("A"), "newError");
});

const node = (tag, type, closest = {}) => ({
  isContentEditable: false,
  closest: (query) => (query.startsWith("input") ? (tag ? { type } : null) : closest.editable || null),
});

test("fields that take text are typing, boxes and buttons are not", () => {
  assert.equal(isTyping(node("textarea", "textarea")), true);
  assert.equal(isTyping(node("input", "search")), true);
  assert.equal(isTyping(node("select", "select-one")), true);
  assert.equal(isTyping(node("input", "checkbox")), false);
  assert.equal(isTyping(node(null)), false);
  assert.equal(isTyping(null), false);
});
