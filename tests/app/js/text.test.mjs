import assert from "node:assert/strict";
import test from "node:test";
import * as text from "../../../app/components/annotator/js/text.mjs";

const place = { span_id: "s", field: "output" };

test("offsets are code points, as Python counts them", () => {
  const stored = "a😀b\r\nשלום c";
  const from = stored.indexOf("b");
  const evidence = text.evidenceOf(stored, from, stored.indexOf(" c"), place);
  assert.equal(evidence.start, 2); // a, one emoji
  assert.equal(evidence.end, 9); // b CR LF and four letters
  assert.equal(evidence.quote, "b\r\nשלום");
  assert.equal(Array.from(stored).slice(evidence.start, evidence.end).join(""), evidence.quote);
  assert.equal(evidence.before, "a😀");
  assert.equal(evidence.after, " c");
});

test("a selection through the middle of an emoji takes the whole of it", () => {
  const evidence = text.evidenceOf("x😀y", 2, 3, place);
  assert.deepEqual([evidence.quote, evidence.start, evidence.end], ["😀y".slice(0, 2), 1, 2]);
});

test("a lone surrogate counts as one", () => {
  assert.equal(text.codePointAtUnit("\ud800x\udc00", 3), 3);
  assert.equal(text.unitAtCodePoint("\ud800x\udc00z", 3), 3);
});

test("a selection made backwards is the same evidence", () => {
  assert.deepEqual(text.evidenceOf("hello world", 5, 0, place), text.evidenceOf("hello world", 0, 5, place));
});

test("code points and units are each other's inverse", () => {
  const stored = "a😀\r\n\u0000é👩‍👩‍👧z";
  for (let point = 0; point <= Array.from(stored).length; point++) {
    assert.equal(text.codePointAtUnit(stored, text.unitAtCodePoint(stored, point)), point);
  }
});

test("evidence is found again by its place, then by its context, then by its words, else not", () => {
  const stored = "one two one two";
  const second = text.evidenceOf(stored, 8, 11, place);
  assert.deepEqual(text.placeEvidence(stored, second), [8, 11]);
  assert.deepEqual(text.placeEvidence("… " + stored, { ...second, start: 0, end: 3 }), [10, 13]);
  assert.deepEqual(text.placeEvidence("x one y", { ...second, start: null, end: null }), [2, 5]);
  assert.equal(text.placeEvidence("nothing", second), null);
});

test("evidence that was quoted before or after names were hidden is found by its place, however long it is", () => {
  const quoted = text.evidenceOf("the 🐟bot said so, the end", 4, 19, place);
  assert.equal(quoted.quote, "🐟bot said so, ");
  assert.deepEqual(text.placeEvidence("the ████ said so, the end", quoted), [4, 18]);
  assert.equal(text.placeEvidence("the ████ says so, the end", quoted), null);
  const long = "a name ".repeat(20_000);
  const started = process.cpuUsage().user;
  assert.deepEqual(text.placeEvidence(long.replaceAll("name", "████"), text.evidenceOf(long, 0, long.length, place)), [0, long.length]);
  assert.ok(process.cpuUsage().user - started < 5_000_000, "letters are compared once each");
});

test("shown pieces cover the stored text without gap or overlap", () => {
  const image = "data:image/png;base64," + "A".repeat(200);
  const stored = `a\r\nb\u0000c\u202e${image} end\rz\u200dq`;
  const pieces = text.shownPieces(stored);
  assert.equal(pieces.map(({ start, end }) => stored.slice(start, end)).join(""), stored);
  pieces.slice(1).forEach((piece, i) => assert.equal(piece.start, pieces[i].end));
  assert.deepEqual(pieces.filter(({ kind }) => kind !== "text").map(({ kind }) => kind), ["skip", "control", "control", "data", "control"]);
});

test("tab and line feed are text; a joiner inside an emoji is not taken out", () => {
  assert.deepEqual(text.shownPieces("a\tb\nc 👩‍👧").map(({ kind }) => kind), ["text"]);
});

test("pieces of a stretch stay inside it", () => {
  const pieces = text.shownPieces("ab\r\ncd\u0001ef", 1, 7);
  assert.equal(pieces[0].start, 1);
  assert.equal(pieces.at(-1).end, 7);
});

test("control characters have names", () => {
  assert.deepEqual([0, 0x1b, 0x7f, 0x202e, 0x85].map(text.controlName), ["␀", "␛", "␡", "RLO", "U+0085"]);
});

test("a data URL is named by type and size", () => {
  assert.equal(text.dataChip("data:image/png;base64," + "A".repeat(4000)), "image/png, 3.0 kB");
});

test("JSON is laid out without moving a stored character", () => {
  const stored = '{"a":[1,{}],"b":"x\\ny","c":[]}';
  const pieces = text.prettyJson(stored);
  const kept = pieces.filter(({ kind }) => kind !== "added");
  assert.equal(kept.map(({ start, end }) => stored.slice(start, end)).join(""), stored);
  const shown = pieces.map((piece) => (piece.show !== undefined ? piece.show : piece.kind === "skip" ? "" : stored.slice(piece.start, piece.end))).join("");
  assert.equal(shown, '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": "x\ny",\n  "c": []\n}');
});

test("letters that JSON escapes are shown as they are read, an emoji of two escapes as one", () => {
  const stored = String.raw`{"k":"caf\u00e9 \ud83d\ude00"}`;
  const decoded = text.prettyJson(stored).filter((piece) => piece.kind === "decoded");
  assert.deepEqual(decoded.map((piece) => piece.show), ["é", "😀"]);
  assert.deepEqual(decoded.map((piece) => stored.slice(piece.start, piece.end)), [String.raw`\u00e9`, String.raw`\ud83d\ude00`]);
});

test("what is not a JSON object or list is not laid out", () => {
  for (const stored of ["33149", '"text"', "{broken", "null"]) assert.equal(text.prettyJson(stored), null);
});

test("sentences grow forwards and backwards and shrink again", () => {
  const stored = "First one. Second two! Third?\nFourth line";
  const cut = (range) => stored.slice(...range);
  const first = text.extendBySentence(stored, null, true);
  assert.equal(cut(first), "First one.");
  const two = text.extendBySentence(stored, first, true);
  assert.equal(cut(two), "First one. Second two!");
  const all = text.extendBySentence(stored, text.extendBySentence(stored, two, true), true);
  assert.equal(cut(all), stored);
  assert.deepEqual(text.extendBySentence(stored, all, true), all);
  assert.equal(cut(text.shrinkBySentence(stored, two, true)), "First one.");
  assert.equal(cut(text.shrinkBySentence(stored, two, false)), "Second two!");
  const last = text.extendBySentence(stored, null, false);
  assert.equal(cut(last), "Fourth line");
  assert.equal(cut(text.extendBySentence(stored, last, false)), "Third?\nFourth line");
});

test("the number of a list, a bullet and an abbreviation end no sentence", () => {
  const stored = "1. Open the door. Then wait.\n- b) Use e.g. a key.\n12.\nDone.";
  assert.deepEqual(text.sentencesOf(stored).map((range) => stored.slice(...range)), ["1. Open the door.", "Then wait.", "- b) Use e.g. a key.", "12.", "Done."]);
  assert.equal(stored.slice(...text.extendBySentence(stored, null, true)), "1. Open the door.");
});

test("a text without words has no sentence", () => {
  assert.equal(text.extendBySentence(" \n \n", null, true), null);
  assert.equal(text.extendBySentence("", null, false), null);
});

test("fenced code is found, an open fence reaches to the end", () => {
  const stored = "a\n```py\nx\n```\nb\n```\ny";
  assert.deepEqual(text.codeFences(stored).map(([from, to]) => stored.slice(from, to)), ["```py\nx\n```", "```\ny"]);
});
