// The page: elements made without markup, trace text shown as text, selections read back as places in it.

import { countText, codeFences, controlName, dataChip, prettyJson, shownPieces, snapUnit } from "./text.mjs";

const TJ_CHUNK = 8000;
const tjPlaces = new WeakMap(); // node -> the stretch of stored text it shows

/** An element. `text` is set as text; `on` holds listeners; everything else is an attribute (null: left out). */
export function el(tag, { text, on, ...attributes } = {}, ...children) {
  const node = document.createElement(tag);
  if (tag === "button") node.type = "button";
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  if (text !== undefined && text !== null) node.textContent = String(text);
  for (const [event, listener] of Object.entries(on || {})) node.addEventListener(event, listener);
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** As `replaceIn`, but a child that is there already is not taken out and laid out again. */
export function renewIn(host, ...children) {
  const wanted = new Set(children);
  for (const old of [...host.childNodes]) if (!wanted.has(old)) old.remove();
  children.forEach((child, at) => {
    if (host.childNodes[at] !== child) host.insertBefore(child, host.childNodes[at] || null);
  });
}

export function replaceIn(host, ...children) {
  host.replaceChildren(...children.filter(Boolean));
}

/**
 * Shows `text` from `from` to `to` in `host`: `pretty` formats JSON, `layout` is the structure that the server has
 * read in the text, `prose` sets fenced code apart where there is neither.
 */
export function showText(host, text, { from = 0, to = text.length, pretty = false, prose = false, layout = null } = {}) {
  const json = pretty && from === 0 && to === text.length ? prettyJson(text) : null;
  const pieces = json || (layout ? [] : shownPieces(text, from, to));
  const fences = prose && !json ? codeFences(text) : [];
  const writer = { host, map: [], target: host, length: 0, isChunked: to - from > 2 * TJ_CHUNK };
  host.replaceChildren();
  host.tjText = text;
  host.tjMap = writer.map;
  host.tjFrom = from;
  host.tjTo = to;
  for (const piece of pieces) showPiece(writer, text, piece, fences);
  if (layout && !json) showNodes({ ...writer, isChunked: false }, text, layout, from, to);
}

const TJ_ELEMENTS = { table: "table", rows: "tbody", tr: "tr", th: "th", td: "td", em: "em", strong: "strong", del: "del", code: "code", hr: "hr", ins: "span" };

/** The nodes of a layout, as far as they lie between `from` and `to`; their names are classes, never markup. */
function showNodes(writer, text, nodes, from, to) {
  const host = writer.target;
  for (const node of nodes) {
    if (typeof node[0] === "number") {
      showLeaf(writer, text, node, from, to);
      continue;
    }
    const [name, ...inner] = node;
    const isBlock = /^(p|h[1-6]|ul|ol|li|quote|pre|info)$/.test(name);
    writer.target = el(TJ_ELEMENTS[name] || (isBlock ? "div" : "span"), { class: "tj-md-" + name });
    showNodes(writer, text, inner, from, to);
    if (writer.target.firstChild || name === "hr" || name === "td") host.append(writer.target);
    writer.target = host;
  }
}

function showLeaf(writer, text, [start, end, shown], from, to) {
  const stretch = { start: Math.max(start, from), end: Math.min(end, to) };
  if (stretch.start >= stretch.end) return;
  if (shown !== undefined) place(writer, document.createTextNode(shown), stretch, false);
  else for (const piece of shownPieces(text, stretch.start, stretch.end)) showPiece(writer, text, piece, []);
}

function showPiece(writer, text, piece, fences) {
  if (piece.kind === "skip") return;
  if (piece.kind === "text") {
    for (const cut of cutsOf(text, piece, fences)) showStretch(writer, text, cut);
    return;
  }
  if (piece.kind === "added" || piece.kind === "decoded") {
    place(writer, document.createTextNode(piece.show), piece, false);
    return;
  }
  const unit = text.charCodeAt(piece.start);
  const chip =
    piece.kind === "data"
      ? el("span", { class: "tj-chip", title: "Embedded file: its name is shown, its content is never loaded", text: dataChip(text.slice(piece.start, piece.end)) })
      : el("span", { class: "tj-control", title: "Control character U+" + unit.toString(16).toUpperCase().padStart(4, "0"), text: controlName(unit) });
  place(writer, chip, piece, false);
}

function cutsOf(text, piece, fences) {
  const edges = new Set([piece.start, piece.end]);
  for (const [open, close] of fences) for (const edge of [open, close]) if (edge > piece.start && edge < piece.end) edges.add(edge);
  for (let at = piece.start + TJ_CHUNK; at < piece.end; at += TJ_CHUNK) edges.add(breakNear(text, at));
  const sorted = [...edges].sort((a, b) => a - b);
  return sorted.slice(1).map((end, i) => {
    const start = sorted[i];
    return { start, end, isCode: fences.some(([open, close]) => open <= start && end <= close) };
  });
}

function breakNear(text, at) {
  const line = text.lastIndexOf("\n", at);
  return line > at - TJ_CHUNK / 2 ? line + 1 : snapUnit(text, at, false);
}

function showStretch(writer, text, { start, end, isCode }) {
  if (writer.isChunked && (writer.target === writer.host || writer.length > TJ_CHUNK)) {
    writer.target = el("div", { class: "tj-chunk" });
    writer.host.append(writer.target);
    writer.length = 0;
  }
  writer.length += end - start;
  const node = document.createTextNode(text.slice(start, end));
  place(writer, node, { start, end }, true, isCode);
}

function place(writer, node, { start, end }, isExact, isCode = false) {
  tjPlaces.set(node, { start, end, isExact });
  writer.map.push({ node, start, end, isExact });
  if (isCode) writer.target.append(el("span", { class: "tj-fence" }, node));
  else writer.target.append(node);
}

/** The offset in the stored text of a boundary point inside (or around) `host`. */
export function unitOf(host, node, offset) {
  const held = tjPlaces.get(node);
  if (held && node.nodeType === 3) return held.isExact ? held.start + offset : offset === 0 ? held.start : held.end;
  const point = document.createRange();
  point.setStart(node, offset);
  let [low, high] = [0, host.tjMap.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (point.comparePoint(host.tjMap[middle].node, 0) < 0) low = middle + 1;
    else high = middle;
  }
  if (low === host.tjMap.length) return host.tjTo;
  const chip = low > 0 ? host.tjMap[low - 1] : null;
  return chip && !chip.isExact && chip.node.contains(node) && node !== host ? chip.end : host.tjMap[low].start;
}

/** A Range over UTF-16 `from`..`to` of the text in `host`, as far as the host shows it; null where it does not. */
export function rangeIn(host, from, to) {
  const start = Math.max(from, host.tjFrom);
  const end = Math.min(to, host.tjTo);
  if (start >= end || !host.tjMap.length) return null;
  const range = document.createRange();
  const first = host.tjMap.find((entry) => entry.end > start);
  const last = host.tjMap.findLast((entry) => entry.start < end);
  if (!first || !last || last.end <= first.start) return null; // all of it is hidden
  if (first.isExact) range.setStart(first.node, Math.max(0, start - first.start));
  else range.setStartBefore(first.node);
  if (last.isExact) range.setEnd(last.node, Math.min(last.end, end) - last.start);
  else range.setEndAfter(last.node);
  return range;
}

/** The selected stretch of trace text: `{host, from, to}`; a selection over several texts counts in its first. */
export function selectedText(root) {
  const selection = window.getSelection();
  if (!selection || selection.rangeCount === 0 || selection.isCollapsed) return null;
  const range = selection.getRangeAt(0);
  if (!root.contains(range.commonAncestorContainer)) return null;
  const start = range.startContainer;
  const within = (start.nodeType === 1 ? start : start.parentElement).closest(".tj-text");
  const host = within || [...root.querySelectorAll(".tj-text")].find((each) => range.intersectsNode(each));
  if (!host || !host.tjMap) return null;
  const from = host.contains(start) ? unitOf(host, start, range.startOffset) : host.tjFrom;
  const to = host.contains(range.endContainer) ? endOf(host, range) : host.tjTo;
  return to > from ? { host, from, to } : null;
}

/** The end of a selection; before the first letter of a stretch it is the end of the one before, not what is hidden between. */
function endOf(host, range) {
  const to = unitOf(host, range.endContainer, range.endOffset);
  const before = range.endOffset === 0 ? host.tjMap.findLast((entry) => entry.end <= to) : null;
  return before ? before.end : to;
}

/** Does `draw` and sets the selection in trace text again on the same stretch of it. */
export function keepSelection(root, hostLike, draw) {
  const chosen = selectedText(root);
  draw();
  const host = chosen && !chosen.host.isConnected && hostLike(chosen.host);
  const range = host && rangeIn(host, chosen.from, chosen.to);
  if (range) window.getSelection().setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
}

/** Marks ranges without touching the text: `name` is one of the ::highlight names of the style sheet. */
export function markRanges(name, ranges) {
  if (!window.Highlight || !CSS.highlights) return;
  if (ranges.length) CSS.highlights.set(name, new Highlight(...ranges));
  else CSS.highlights.delete(name);
}

export function charactersText(length) {
  return countText(length) + (length === 1 ? " character" : " characters");
}

/** A short message for eye and screen reader; it leaves by itself. */
export function say(desk, message, isProblem = false) {
  const toast = desk.part("toast");
  toast.textContent = message;
  toast.classList.toggle("tj-problem", isProblem);
  toast.classList.add("tj-shown");
  clearTimeout(desk.toastTimer);
  desk.toastTimer = setTimeout(() => toast.classList.remove("tj-shown"), isProblem ? 6000 : 2600);
}

export async function copyText(desk, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(desk, `${what} copied`);
  } catch {
    say(desk, `${what}: ${text}`);
  }
}

/** What a term of the vocabulary means, for a `title`; null for a word that is none. `TJ_TERMS` begins the joined script. */
export function meaningOf(term) {
  return typeof TJ_TERMS === "undefined" ? null : TJ_TERMS[term] || null;
}

/** What this browser remembers under `key`; `otherwise` where that is nothing or cannot be read. */
export function recall(key, otherwise, storage = window.localStorage) {
  try {
    const text = storage.getItem(key);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function remember(key, value, storage = window.localStorage) {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    return; // a preference, not a label: it may be lost
  }
}
