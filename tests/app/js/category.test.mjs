import assert from "node:assert/strict";
import test from "node:test";
import { matchCategories, usedNow } from "../../../app/components/annotator/js/category.mjs";

const NAMES = ["Language-only", "Tool-related", "Poor Information Retrieval", "Tool Output Misinterpretation", "Tool Selection Errors", "Formatting Errors", "Rate Limiting", "Goal Deviation", "Resource Abuse"];

test("initials, beginnings of words and pieces of words all find a category", () => {
  assert.deepEqual(matchCategories(NAMES, "tse"), ["Tool Selection Errors"]);
  assert.deepEqual(matchCategories(NAMES, "PIR"), ["Poor Information Retrieval"]);
  assert.deepEqual(matchCategories(NAMES, "tool sel"), ["Tool Selection Errors"]);
  assert.deepEqual(matchCategories(NAMES, "dev"), ["Goal Deviation"]);
  assert.deepEqual(matchCategories(NAMES, "limit"), ["Rate Limiting"]);
  assert.deepEqual(matchCategories(NAMES, "nguage"), ["Language-only"]);
});

test("the first word counts more than a later one, and the order of the list decides the rest", () => {
  assert.deepEqual(matchCategories(NAMES, "tool"), ["Tool-related", "Tool Output Misinterpretation", "Tool Selection Errors"]);
  assert.deepEqual(matchCategories(NAMES, "re"), ["Resource Abuse", "Tool-related", "Poor Information Retrieval", "Tool Output Misinterpretation"]);
});

test("nothing typed is all of them, nonsense is none", () => {
  assert.deepEqual(matchCategories(NAMES, "  "), NAMES);
  assert.deepEqual(matchCategories(NAMES, "zzz"), []);
  assert.deepEqual(matchCategories(NAMES, "tool zzz"), []);
});

test("the last used come first, each once, and only a few", () => {
  assert.deepEqual(["a", "b", "a", "c", "d", "e"].reduce(usedNow, []), ["e", "d", "c", "a"]);
});
