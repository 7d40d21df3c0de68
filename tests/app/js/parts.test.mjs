import assert from "node:assert/strict";
import { test } from "node:test";
import { isLeftover, isReasoning, mediaIn } from "../../../app/components/annotator/js/reader.mjs";

test("what a model thought is told from what it said by its field", () => {
  assert.ok(isReasoning({ field: "message:12:reasoning" }));
  for (const field of ["message:12", "attribute:gen_ai.reasoning", "output"]) assert.ok(!isReasoning({ field }));
});

test("a text that no dialect understood is told by its field", () => {
  for (const field of ["attribute:acme.prompt", "event:0:text"]) assert.ok(isLeftover({ field }));
  for (const field of ["event:0", "message:1", "input"]) assert.ok(!isLeftover({ field }));
});

test("pictures, sounds and files are found by the hash in their placeholder, each once, and named", () => {
  const digest = (byte) => byte.repeat(32);
  const shown = `[image image/png, 8 bytes, sha256 ${digest("ab")}]`;
  assert.deepEqual(mediaIn(`See ${shown} and\n${shown}`), [[digest("ab"), "picture"]]);
  assert.deepEqual(mediaIn(`[image image/png, at https://x.org/a.png] sha256 ${digest("ab")}`), []);
  const others = ["audio wav", "file audio/mpeg", "video video/mp4", "file map.pdf application/pdf"];
  const names = mediaIn(others.map((about, place) => `[${about}, 9 bytes, sha256 ${digest("a" + place)}]`).join(" ")).map(([, name]) => name);
  assert.deepEqual(names, ["audio player", "audio player", "video player", "file"]);
});
