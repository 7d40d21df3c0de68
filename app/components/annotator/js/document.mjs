// The trace as it is on the page: its spans, and as much of its text as has been loaded.

import { SpanIndex } from "./spans.mjs";

export class TraceDocument {
  constructor(desk, doc) {
    this.desk = desk;
    this.take(doc);
  }

  /** A long trace opens with its outline; plans, warnings and the first texts come when it has been read. */
  async loadRest() {
    const rest = await this.desk.connection.fetchJson("trace/" + encodeURIComponent(this.desk.traceId), { rest: 1 });
    if (this.desk.signal.aborted) return;
    if (rest && rest.digest !== this.doc.digest) return this.desk.traceGrew();
    if (rest) {
      this.doc = { ...rest, blocks: rest.blocks };
      this.plans = new Set(rest.plans);
      for (const [number, text] of Object.entries(rest.texts)) this.texts.set(+number, text);
      for (const block of rest.blocks) this.blocks[block.seq] = block;
    }
    this.restArrived();
    this.desk.tree.draw();
    for (const group of this.desk.reader.groups) if (group.isDrawn) this.desk.reader.refill(group);
  }

  take(doc) {
    this.doc = doc;
    this.spans = new SpanIndex({ ...doc.spans, names: doc.names, agents: doc.agents, tools: doc.tools });
    this.models = doc.models;
    this.plans = new Set(doc.plans);
    this.texts = new Map(Object.entries(doc.texts).map(([number, text]) => [+number, text]));
    this.blocks = new Array(this.spans.size);
    for (const block of doc.blocks) this.blocks[block.seq] = block;
    this.rest = new Promise((arrived) => (this.restArrived = arrived));
    if (!doc.partial) this.restArrived();
  }

  /** Loads blocks that are not here yet (`whole`: with their long texts in full). */
  async loadBlocks(first, count, whole = false) {
    await this.rest;
    const answer = await this.desk.connection.fetchJson(`span/${encodeURIComponent(this.desk.traceId)}/${first}`, { count, ...(whole ? { whole: 1 } : {}) });
    if (!answer) return false;
    if (answer.digest !== this.doc.digest) {
      this.desk.traceGrew();
      return false;
    }
    for (const [number, text] of Object.entries(answer.texts)) {
      if (whole || typeof this.texts.get(+number) !== "string") this.texts.set(+number, text);
    }
    for (const block of answer.blocks) this.blocks[block.seq] = block;
    return true;
  }

  textOf(number) {
    const text = this.texts.get(number);
    if (typeof text === "string") return { loaded: text, length: text.length, isWhole: true };
    return text ? { loaded: text.head, length: text.length, isWhole: false } : { loaded: "", length: 0, isWhole: true };
  }

  hasCutText(seq) {
    const block = this.blocks[seq];
    return block.parts.some((part) => !this.textOf(part.text).isWhole) || block.repeats.some((repeat) => !this.textOf(repeat[3]).isWhole);
  }

  get isWhole() {
    return this.doc.blocks.length === this.spans.size && [...this.texts.values()].every((text) => typeof text === "string");
  }

  loadedTexts(seq) {
    const block = this.blocks[seq];
    return block ? block.parts.map((part) => this.textOf(part.text).loaded) : [];
  }

  warningsOf(seq) {
    return this.doc.span_warnings[seq] || [];
  }
}
