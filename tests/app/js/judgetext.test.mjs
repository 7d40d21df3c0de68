import assert from "node:assert/strict";
import { test } from "node:test";
import { headersIn, stretchesOf } from "../../../app/components/annotator/js/judgetext.mjs";

const LINE = "  a line of a trace, ordinary, with emoji 😀 and \r\n  a second\u2028  third\n";

test("stretches joined are the text again, whatever its length", () => {
  for (const text of ["", "x", LINE, LINE.repeat(900), "no end of line ".repeat(3000), "\n".repeat(9000)]) {
    assert.equal(stretchesOf(text, 100).join(""), text);
    assert.equal(stretchesOf(text).join(""), text);
  }
});

test("stretches end with a line and are not far from their size", () => {
  const stretches = stretchesOf(LINE.repeat(900), 1000);
  assert.ok(stretches.length > 30);
  for (const stretch of stretches.slice(0, -1)) assert.ok(stretch.endsWith("\n") && stretch.length < 1200);
});

test("headers are the lines at column 0 that name a span, and nothing is lost around them", () => {
  const text = "Trace t: 2 spans\n\n[S1] AGENT run | span a | OK\n input:\n  [S2] is only quoted\n\n[S2] LLM x | span b\n";
  const pieces = headersIn(text);
  assert.equal(pieces.map(([piece]) => piece).join(""), text);
  assert.deepEqual(
    pieces.filter(([, seq]) => seq !== null),
    [
      ["[S1] AGENT run | span a | OK", 0],
      ["[S2] LLM x | span b", 1],
    ],
  );
});
