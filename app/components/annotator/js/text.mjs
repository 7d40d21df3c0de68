// Stored text and what is shown of it: code points, control characters made visible, sentences.

const TJ_SPECIAL = new RegExp(
  "data:[a-z]+/[\\w.+-]+(?:;[\\w=.-]+)*,[A-Za-z0-9+/=_%.-]{48,}" + // embedded files: never rendered, only named
    "|\\r\\n" +
    "|[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]" +
    "|[\\u00ad\\u061c\\u200b\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2060\\u2066-\\u2069\\ufeff]",
  "gi",
);
const TJ_NAMES = {
  0xad: "SHY", 0x61c: "ALM", 0x200b: "ZWSP", 0x200e: "LRM", 0x200f: "RLM", 0x2028: "LS", 0x2029: "PS",
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ",
  0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
const TJ_SENTENCES = typeof Intl.Segmenter === "function" ? new Intl.Segmenter("und", { granularity: "sentence" }) : null;
const TJ_NO_END = /^(?:[([]?(?:\d{1,3}|[a-z]|[ivxlc]{1,5})[.)\]:]+|[-*•#>]+)$|(?:^|\s)(?:e\.g|i\.e|cf|vs|dr|mr|mrs|ms|fig|no|eq|approx)\.$/i; // `1.`, `- `, `e.g.`
const TJ_WINDOW = 20000;

const isHigh = (unit) => unit >= 0xd800 && unit <= 0xdbff;
const isLow = (unit) => unit >= 0xdc00 && unit <= 0xdfff;

/** Code points of `text` before the UTF-16 offset `at`: what Python counts. */
export function codePointAtUnit(text, at) {
  let points = 0;
  for (let i = 0; i < at; i++) {
    if (!(isLow(text.charCodeAt(i)) && i > 0 && isHigh(text.charCodeAt(i - 1)))) points++;
  }
  return points;
}

/** The UTF-16 offset of code point number `point`, at most the text's length. */
export function unitAtCodePoint(text, point) {
  let i = 0;
  for (let seen = 0; seen < point && i < text.length; seen++) {
    i += isHigh(text.charCodeAt(i)) && i + 1 < text.length && isLow(text.charCodeAt(i + 1)) ? 2 : 1;
  }
  return i;
}

/** `at` moved out of the middle of a surrogate pair: back for a start, on for an end. */
export function snapUnit(text, at, isEnd) {
  const inside = at > 0 && at < text.length && isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));
  return inside ? (isEnd ? at + 1 : at - 1) : at;
}

/** Evidence of UTF-16 `from`..`to`: the quote, its code points, and up to `context` code points on each side. */
export function evidenceOf(text, from, to, place, context = 40) {
  const start = snapUnit(text, Math.min(from, to), false);
  const end = snapUnit(text, Math.max(from, to), true);
  const first = codePointAtUnit(text, start);
  const quote = text.slice(start, end);
  return {
    quote,
    span_id: place.span_id,
    field: place.field,
    start: first,
    end: first + codePointAtUnit(quote, quote.length),
    before: Array.from(text.slice(Math.max(0, start - 2 * context), start)).slice(-context).join(""),
    after: Array.from(text.slice(end, end + 2 * context)).slice(0, context).join(""),
  };
}

/** Where evidence stands in `text` (UTF-16), or null: by its code points, else by its quote with its context. */
export function placeEvidence(text, evidence) {
  if (evidence.start !== null && evidence.end !== null) {
    const start = unitAtCodePoint(text, evidence.start);
    const end = unitAtCodePoint(text, evidence.start + codePointAtUnit(evidence.quote, evidence.quote.length));
    if (standsFor(text.slice(start, end), evidence.quote)) return [start, end];
  }
  if (!evidence.quote) return null;
  const wrapped = (evidence.before || "") + evidence.quote + (evidence.after || "");
  const around = text.indexOf(wrapped);
  if (around >= 0) return [around + (evidence.before || "").length, around + wrapped.length - (evidence.after || "").length];
  const at = text.indexOf(evidence.quote);
  return at >= 0 ? [at, at + evidence.quote.length] : null;
}

/** Whether `shown` is `quote`, letters of hidden names (█) aside. */
function standsFor(shown, quote) {
  if (shown === quote || !shown.includes("█")) return shown === quote;
  const letters = [...quote];
  const seen = [...shown];
  return seen.length === letters.length && seen.every((letter, at) => letter === "█" || letter === letters[at]);
}

/** The name shown for a control character: a Control Picture, or a short name. */
export function controlName(unit) {
  if (unit < 0x20) return String.fromCharCode(0x2400 + unit);
  if (unit === 0x7f) return "␡";
  return TJ_NAMES[unit] || "U+" + unit.toString(16).toUpperCase().padStart(4, "0");
}

/** What a data: URL is, for its chip: `image/png, 48 kB`. */
export function dataChip(url) {
  const comma = url.indexOf(",");
  const type = url.slice(5, comma).split(";")[0];
  const payload = url.length - comma - 1;
  const bytes = url.slice(0, comma).endsWith(";base64") ? Math.floor((payload * 3) / 4) : payload;
  return type + ", " + sizeText(bytes);
}

export function sizeText(bytes) {
  if (bytes < 1000) return bytes + " B";
  if (bytes < 1e6) return (bytes / 1e3).toFixed(bytes < 1e4 ? 1 : 0) + " kB";
  return (bytes / 1e6).toFixed(1) + " MB";
}

export function countText(number) {
  return number.toLocaleString("en-US");
}

/**
 * `text` from `from` to `to` as pieces that are shown: `text` as it stands, `control` named, `data` as a chip,
 * `skip` (the CR of CRLF) not at all. They cover the stretch without gap or overlap.
 */
export function shownPieces(text, from = 0, to = text.length) {
  const pieces = [];
  let at = from;
  TJ_SPECIAL.lastIndex = from;
  for (let hit; (hit = TJ_SPECIAL.exec(text)) && hit.index < to; ) {
    const end = Math.min(hit.index + hit[0].length, to);
    if (hit.index > at) pieces.push({ kind: "text", start: at, end: hit.index });
    if (hit[0] === "\r\n") {
      pieces.push({ kind: "skip", start: hit.index, end: Math.min(hit.index + 1, to) });
      at = hit.index + 1;
      continue;
    }
    pieces.push({ kind: hit[0].length > 1 ? "data" : "control", start: hit.index, end });
    at = end;
  }
  if (at < to) pieces.push({ kind: "text", start: at, end: to });
  return pieces;
}

/** Stretches of fenced code (``` lines) in `text`, fences included. */
export function codeFences(text) {
  const fences = [];
  const mark = /^[ \t]*```.*$/gm;
  let open = -1;
  for (let hit; (hit = mark.exec(text)); ) {
    if (open < 0) open = hit.index;
    else {
      fences.push([open, hit.index + hit[0].length]);
      open = -1;
    }
  }
  if (open >= 0) fences.push([open, text.length]);
  return fences;
}

/** Pieces that show JSON text laid out: stored text stays exact, added white space and decoded escapes are marked. */
export function prettyJson(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return null;
  } catch {
    return null;
  }
  const pieces = [];
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;
  let depth = 0;
  let last = 0;
  const virtual = (show, at) => pieces.push({ kind: "added", start: at, end: at, show });
  const line = (at) => virtual("\n" + "  ".repeat(depth), at);
  for (let hit; (hit = token.exec(text)); ) {
    const [start, end, mark] = [hit.index, hit.index + hit[0].length, hit[0]];
    if (start > last) pieces.push({ kind: "skip", start: last, end: start });
    last = end;
    if (mark === "}" || mark === "]") {
      depth--;
      line(start);
    }
    if (mark[0] === '"') pushString(pieces, text, start, end);
    else pieces.push({ kind: "text", start, end });
    if (mark === "{" || mark === "[") {
      const next = text.slice(end).match(/^\s*([}\]])/);
      depth++;
      if (next) {
        const close = end + next[0].length;
        pieces.push({ kind: "text", start: end, end: close });
        depth--;
        last = token.lastIndex = close;
      } else line(end);
    } else if (mark === ",") line(end);
    else if (mark === ":") virtual(" ", end);
  }
  if (last < text.length) pieces.push({ kind: "skip", start: last, end: text.length });
  return pieces;
}

function pushString(pieces, text, start, end) {
  const escape = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)/g;
  escape.lastIndex = start;
  let at = start;
  for (let hit; (hit = escape.exec(text)) && hit.index < end; ) {
    if (hit.index > at) pieces.push(...shownPieces(text, at, hit.index));
    const decoded = JSON.parse('"' + hit[0] + '"');
    const unit = decoded.charCodeAt(0);
    const show = decoded === "\n" || decoded === "\t" || unit >= 0x20 ? decoded : controlName(unit);
    at = hit.index + hit[0].length;
    pieces.push({ kind: "decoded", start: hit.index, end: at, show });
  }
  if (at < end) pieces.push(...shownPieces(text, at, end));
}

/** Sentences of `text` as [start, end) without outer white space; a line break ends one, the number of a list does not. */
export function sentencesOf(text, offset = 0) {
  const sentences = [];
  for (let hit, line = /[^\n\r]+/g; (hit = line.exec(text)); ) {
    const segments = TJ_SENTENCES ? TJ_SENTENCES.segment(hit[0]) : [{ segment: hit[0], index: 0 }];
    let open = null; // where a sentence began that its full stop did not end
    for (const { segment, index } of segments) {
      const body = segment.trim();
      if (!body) continue;
      const start = offset + hit.index + index + segment.length - segment.trimStart().length;
      const range = [open ?? start, start + body.length];
      open = TJ_NO_END.test(body) ? range[0] : null;
      if (open === null || index + segment.length >= hit[0].trimEnd().length) sentences.push(range);
    }
  }
  return sentences;
}

/** The selection [from, to) grown by a sentence: `forward` at its end, else at its start. Null: a first sentence. */
export function extendBySentence(text, selection, forward) {
  if (selection === null) {
    const near = forward ? sentencesOf(text.slice(0, TJ_WINDOW)) : tailSentences(text, text.length);
    return (forward ? near[0] : near[near.length - 1]) || null;
  }
  const [from, to] = selection;
  if (forward) {
    const next = sentencesOf(text.slice(from, to + TJ_WINDOW), from).find(([, end]) => end > to);
    return next ? [from, next[1]] : selection;
  }
  const before = tailSentences(text, to).filter(([start]) => start < from);
  return before.length ? [before[before.length - 1][0], to] : selection;
}

/** The selection made a sentence smaller at its end (`forward`) or its start; never empty. */
export function shrinkBySentence(text, selection, forward) {
  if (selection === null) return null;
  const [from, to] = selection;
  const inside = sentencesOf(text.slice(from, to), from);
  if (inside.length < 2) return selection;
  return forward ? [from, inside[inside.length - 2][1]] : [inside[1][0], to];
}

function tailSentences(text, to) {
  const from = Math.max(0, to - TJ_WINDOW);
  return sentencesOf(text.slice(from, to), from);
}
