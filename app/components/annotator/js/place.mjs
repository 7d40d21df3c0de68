// Where the person is in the trace, and how she gets to another span.

import { recall, remember, say } from "./page.mjs";

export class Place {
  constructor(desk) {
    this.desk = desk;
    this.current = 0;
    desk.signal.addEventListener("abort", () => clearTimeout(this.spanTimer));
  }

  resumeSeq() {
    const labelled = this.desk.work.state.errors.at(-1)?.span_ids.at(-1); // of a browser that has not seen this draft
    return this.desk.trace.spans.seqOf.get(recall(`tj:span:${this.desk.user}:${this.desk.traceId}`, null)) ?? this.desk.trace.spans.seqOf.get(labelled) ?? 0;
  }

  select(seq, { from = null, isFirst = false, keepScroll = false, toHit = false } = {}) {
    const previous = this.current;
    this.current = Math.max(0, Math.min(this.desk.trace.spans.size - 1, seq));
    this.desk.root.dataset.current = "S" + (this.current + 1);
    this.desk.tree.reveal(this.current);
    if (!keepScroll) this.desk.reader.dropSelection(this.current);
    if (!isFirst && !keepScroll) this.desk.reader.show(this.current, previous);
    else {
      this.desk.reader.blockNode(previous)?.classList.remove("tj-now");
      this.desk.reader.blockNode(this.current)?.classList.add("tj-now");
      if (isFirst) this.desk.reader.show(this.current, previous);
    }
    this.desk.judgeText.scrollTo(this.current);
    if (toHit) this.desk.reader.scrollToHit(this.current);
    remember(`tj:span:${this.desk.user}:${this.desk.traceId}`, this.desk.trace.spans.id[this.current]);
    clearTimeout(this.spanTimer);
    if (!isFirst || this.desk.data.span) this.spanTimer = setTimeout(() => this.tellSpan(), 250);
    if (from === "tree") this.desk.pane = "tree";
  }

  tellSpan() {
    const id = this.desk.trace.spans.id[this.current];
    if (this.toldSpan === id || this.desk.signal.aborted) return;
    this.toldSpan = id;
    this.desk.component.setStateValue("span", id);
  }

  selectId(id) {
    const seq = this.desk.trace.spans.seqOf.get(id);
    if (seq !== undefined) this.select(seq);
  }

  linkTo(seq) {
    const url = new URL(window.location.href);
    url.search = new URLSearchParams({ trace: this.desk.traceId, span: this.desk.trace.spans.id[seq] }).toString();
    return url.toString();
  }

  nextPlan() {
    const plans = this.desk.trace.doc.plans;
    if (!plans.length) return say(this.desk, "No plan was found in this trace");
    return this.select(plans.find((seq) => seq > this.current) ?? plans[0]);
  }

  /** The next span for which `test` holds, from the first again after the last. */
  nextWhere(test, none) {
    const { size } = this.desk.trace.spans;
    for (let step = 1; step <= size; step++) {
      const seq = (this.current + step) % size;
      if (test(seq)) return this.select(seq);
    }
    return say(this.desk, none);
  }

  labelledSpans() {
    return new Set(this.marksBySpan().keys());
  }

  /** Impacts of the errors on each span (seq). */
  marksBySpan() {
    if (this.markedErrors === this.desk.work.state.errors) return this.marks;
    const marks = new Map();
    this.markedErrors = this.desk.work.state.errors;
    this.marks = marks;
    for (const error of this.desk.work.state.errors) {
      for (const id of error.span_ids) {
        const seq = this.desk.trace.spans.seqOf.get(id);
        if (seq !== undefined) marks.set(seq, [...(marks.get(seq) || []), error.impact || "none"]);
      }
    }
    return marks;
  }
}
