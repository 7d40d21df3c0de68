import assert from "node:assert/strict";
import { test } from "node:test";
import { isLeftover, isReasoning, picturesIn } from "../../../app/components/annotator/js/reader.mjs";

test("what a model thought is told from what it said by its field", () => {
  assert.ok(isReasoning({ field: "message:12:reasoning" }));
  for (const field of ["message:12", "attribute:gen_ai.reasoning", "output"]) assert.ok(!isReasoning({ field }));
});

test("a text that no dialect understood is told by its field", () => {
  for (const field of ["attribute:acme.prompt", "event:0:text"]) assert.ok(isLeftover({ field }));
  for (const field of ["event:0", "message:1", "input"]) assert.ok(!isLeftover({ field }));
});

test("pictures are found by the hash in their placeholder, each once", () => {
  const digest = "ab".repeat(32);
  const shown = `[image image/png, 8 bytes, sha256 ${digest}]`;
  assert.deepEqual(picturesIn(`See ${shown} and\n${shown}`), [digest]);
  assert.deepEqual(picturesIn(`[image image/png, at https://x.org/a.png] sha256 ${digest}`), []);
});
