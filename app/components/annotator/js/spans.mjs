// The span tree as columns: parents, folding, filters, neighbours, search, and the map of time.

export const TJ_KINDS = ["AGENT", "CHAIN", "LLM", "TOOL", "RETRIEVER", "EMBEDDING", "RERANKER", "GUARDRAIL", "EVALUATOR", "PROMPT", "EVENT", "UNKNOWN"];

/** The columns of a document with depth, number of descendants and place by id worked out once. */
export class SpanIndex {
  constructor(columns) {
    Object.assign(this, columns);
    this.size = this.id.length;
    this.depth = new Int32Array(this.size);
    this.last = new Int32Array(this.size); // seq of the last descendant: reading order keeps a subtree together
    this.seqOf = new Map();
    for (let seq = 0; seq < this.size; seq++) {
      const parent = this.parent[seq];
      this.depth[seq] = parent < 0 ? 0 : this.depth[parent] + 1;
      this.seqOf.set(this.id[seq], seq);
    }
    for (let seq = this.size - 1; seq >= 0; seq--) {
      this.last[seq] = Math.max(this.last[seq], seq);
      const parent = this.parent[seq];
      if (parent >= 0) this.last[parent] = Math.max(this.last[parent], this.last[seq]);
    }
  }

  hasChildren(seq) {
    return this.last[seq] > seq;
  }

  title(seq) {
    const tool = this.tool[seq] >= 0 ? this.tools[this.tool[seq]] : "";
    return tool || this.names[this.name[seq]] || "(no name)";
  }

  agentOf(seq) {
    return this.agent[seq] >= 0 ? this.agents[this.agent[seq]] : null;
  }
}

/** Rows of the tree that are shown: not inside a folded span; with a filter, its hits and the spans above them. */
export function visibleRows(spans, folded, accepts = null) {
  const rows = [];
  if (accepts === null) {
    for (let seq = 0; seq < spans.size; ) {
      rows.push(seq);
      seq = folded.has(seq) ? spans.last[seq] + 1 : seq + 1;
    }
    return rows;
  }
  const keep = new Uint8Array(spans.size);
  for (let seq = 0; seq < spans.size; seq++) {
    if (!accepts(seq)) continue;
    for (let up = seq; up >= 0 && !keep[up]; up = spans.parent[up]) keep[up] = 1;
  }
  for (let seq = 0; seq < spans.size; seq++) if (keep[seq]) rows.push(seq);
  return rows;
}

/** The next span (`step` 1 or -1) of the same kind as `seq`, or `seq` where there is none. */
export function peerOf(spans, seq, step) {
  for (let at = seq + step; at >= 0 && at < spans.size; at += step) if (spans.kind[at] === spans.kind[seq]) return at;
  return seq;
}

/** Folding of all spans that have children except the roots; nothing where it is folded already. */
export function foldAll(spans, folded) {
  const next = new Set();
  if (folded.size) return next;
  for (let seq = 0; seq < spans.size; seq++) if (spans.depth[seq] > 0 && spans.hasChildren(seq)) next.add(seq);
  return next;
}

/** Spans whose name, tool, id, agent or loaded text holds `query`; ordinals (`S12`) and id beginnings too. */
export function searchSpans(spans, query, textsOf) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return [];
  const ordinal = /^\[?s(\d+)\]?$/.exec(wanted);
  if (ordinal) return +ordinal[1] >= 1 && +ordinal[1] <= spans.size ? [+ordinal[1] - 1] : [];
  const nameHits = spans.names.map((name) => name.toLowerCase().includes(wanted));
  const toolHits = spans.tools.map((name) => name.toLowerCase().includes(wanted));
  const hits = [];
  for (let seq = 0; seq < spans.size; seq++) {
    const found =
      nameHits[spans.name[seq]] ||
      (spans.tool[seq] >= 0 && toolHits[spans.tool[seq]]) ||
      (wanted.length > 3 && spans.id[seq].toLowerCase().startsWith(wanted)) ||
      textsOf(seq).some((text) => text.toLowerCase().includes(wanted));
    if (found) hits.push(seq);
  }
  return hits;
}

/**
 * The map of time: per kind one SVG path of rectangles. Spans that fall on the same pixels of the same row are
 * drawn once, so that 33,000 spans cost no more than the pixels they stand on. Without times, order is time.
 */
export function timeMap(spans, width, rowHeight, maxRows) {
  const [from, to, hasTimes] = timeRange(spans);
  const scale = to > from ? width / (to - from) : 0;
  const paths = new Map();
  const places = new Float64Array(spans.size * 2);
  const drawn = new Set();
  for (let seq = 0; seq < spans.size; seq++) {
    const start = hasTimes ? spans.start[seq] : seq;
    const length = hasTimes ? spans.duration[seq] || 0 : spans.last[seq] - seq + 1;
    const x = start === null ? 0 : (start - from) * scale;
    const w = Math.max(1, Math.min(length * scale, width - x));
    const row = Math.min(spans.depth[seq], maxRows - 1);
    places[2 * seq] = x;
    places[2 * seq + 1] = row;
    const kind = spans.kind[seq];
    const pixel = `${row}:${Math.round(x * 2)}:${Math.round(w * 2)}:${kind}`;
    if (drawn.has(pixel)) continue;
    drawn.add(pixel);
    const box = `M${x.toFixed(1)} ${row * rowHeight + 1}h${w.toFixed(1)}v${rowHeight - 2}h-${w.toFixed(1)}z`;
    paths.set(kind, (paths.get(kind) || "") + box);
  }
  return { paths, places, from, to, hasTimes };
}

function timeRange(spans) {
  let from = Infinity;
  let to = -Infinity;
  for (let seq = 0; seq < spans.size; seq++) {
    if (spans.start[seq] === null) continue;
    from = Math.min(from, spans.start[seq]);
    to = Math.max(to, spans.start[seq] + (spans.duration[seq] || 0));
  }
  return to > from ? [from, to, true] : [0, spans.size, false];
}

/** The span at a point of the map: the deepest drawn row first, then the nearest start before it. */
export function spanAtPoint(spans, map, x, row) {
  let best = -1;
  let bestCost = Infinity;
  for (let seq = 0; seq < spans.size; seq++) {
    const cost = Math.abs(map.places[2 * seq] - x) + (map.places[2 * seq] > x ? 6 : 0) + 24 * Math.abs(map.places[2 * seq + 1] - row);
    if (cost < bestCost) [best, bestCost] = [seq, cost];
  }
  return best;
}

export function durationText(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "";
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return Math.round(milliseconds) + " ms";
  if (milliseconds < 59950) return (milliseconds / 1000).toFixed(1) + " s";
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 3600) return Math.floor(seconds / 60) + ":" + String(seconds % 60).padStart(2, "0") + " min";
  return Math.floor(seconds / 3600) + ":" + String(Math.floor((seconds % 3600) / 60)).padStart(2, "0") + " h";
}
