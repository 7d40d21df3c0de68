// The end of the work on a trace: what is missing, submit, skip, reopen, reveal.

import { History, missingFields } from "./labels.mjs";
import { el, replaceIn, say } from "./page.mjs";
import { Revealed } from "./revealed.mjs";

const TJ_PATIENCE = 4000; // milliseconds that submitting waits for the store before it says so and lets one go on
let tjFinished = null; // what was submitted or skipped last, until the next trace is there

export class Submission {
  constructor(desk) {
    this.desk = desk;
    this.isBusy = false;
    this.isMissingListed = false;
    this.revealed = null;
  }

  /** After a submission: that it is stored, and which trace this is. */
  sayWhatIsNext() {
    if (tjFinished && tjFinished.traceId !== this.desk.traceId) say(this.desk, `${tjFinished.word}. Next: trace ${this.desk.traceId}`);
    tjFinished = null;
  }

  submit() {
    this.desk.work.flushTyping();
    if (this.desk.data.read_only || this.isBusy) return;
    const missing = missingFields(this.desk.work.state, this.desk.dimensionKeys);
    if (this.desk.work.phase === "revealed") {
      const late = missing.find(({ place }) => place === "error"); // the blind answer is submitted already
      return late ? this.showMissing(late) : this.desk.tell("next");
    }
    if (this.desk.work.state.review.status === "submitted") return this.desk.tell("next");
    if (missing.length) {
      this.isMissingListed = true;
      this.drawMissing();
      return this.showMissing(missing[0]);
    }
    return this.finish("submitted", "");
  }

  /** What a failed submission lacked and still lacks, by name; each entry leads there. */
  drawMissing() {
    const host = this.desk.part("missing");
    const missing = this.isMissingListed && !this.desk.work.isLocked ? missingFields(this.desk.work.state, this.desk.dimensionKeys) : [];
    this.isMissingListed = missing.length > 0;
    host.hidden = !missing.length;
    const entry = (one) => el("button", { class: "tj-link", title: one.message, text: this.missingName(one), on: { click: () => this.showMissing(one) } });
    replaceIn(host, el("b", { text: `Not submitted. ${missing.length === 1 ? "One answer is" : `${missing.length} answers are`} missing:` }), ...missing.map(entry));
  }

  missingName({ place, dimension, short }) {
    return place === "score" ? `Score of ${this.desk.dimensions.find(({ key }) => key === dimension).title}` : short;
  }

  showMissing(missing) {
    say(this.desk, missing.place === "score" ? `${this.missingName(missing)} is missing` : missing.message, true);
    if (missing.place === "error") {
      this.desk.cards.choose(missing.label_id);
      this.desk.focusPane("errors");
      (this.desk.part("errors").querySelector(`.tj-card.tj-now [data-field="${missing.field}"] button`) || this.desk.part("errors").querySelector(`.tj-card.tj-now [data-field="${missing.field}"]`))?.focus();
    } else if (missing.place === "score") {
      this.desk.scores.choose(this.desk.dimensionKeys.indexOf(missing.dimension));
      this.desk.focusPane("scores");
      this.desk.part("scores").querySelector(`[data-dimension="${missing.dimension}"] [data-score]`)?.focus({ preventScroll: true });
    } else {
      this.desk.focusPane("errors");
      this.desk.part("errors").querySelector('[data-hold="no-error"]')?.focus();
    }
  }

  /** Stores the end of the work and moves on once everything has arrived; until then the item stays. */
  async finish(status, reason) {
    this.desk.work.flushTyping();
    this.desk.work.perform({ kind: "review.put", payload: this.desk.work.reviewWith({ status, reason }) });
    this.isBusy = true;
    this.desk.head.draw();
    const isStored = await this.desk.work.drained(TJ_PATIENCE);
    this.isBusy = false;
    this.desk.work.settle();
    this.desk.head.draw();
    if (this.desk.work.state.review.status !== status) return undefined; // another machine's changes came first: the note says so
    if (isStored) {
      const word = status === "skipped" ? "Skipped" : "Submitted";
      if (this.desk.data.queue && !this.desk.data.queue.has_next) say(this.desk, `${word}. This was the last trace`);
      tjFinished = { word, traceId: this.desk.traceId };
      return this.desk.tell(status);
    }
    const { isClosed, problem } = this.desk.work.outbox;
    say(this.desk, `Not saved yet: ${isClosed ? problem : "your changes stay in this browser and are sent when the server answers"}`, true);
    return undefined;
  }

  reopen() {
    this.desk.work.perform({ kind: "review.put", payload: this.desk.work.reviewWith({ status: "open", reason: "" }) });
    this.desk.head.draw();
  }

  /** Asks the server to show what judges and others said; from then on the blind labels are closed. */
  async reveal() {
    if (!(await this.desk.work.drained(TJ_PATIENCE))) return say(this.desk, "Some changes are not saved yet: choose Reveal after they are saved", true);
    this.desk.work.setHistory(new History());
    this.desk.work.perform({ kind: "reveal", payload: {} });
    if (await this.desk.work.drained(TJ_PATIENCE)) return this.loadRevealed();
    return say(this.desk, "Not revealed yet: the findings appear when the server answers", true);
  }

  async loadRevealed() {
    const found = await this.desk.connection.fetchJson("reveal/" + encodeURIComponent(this.desk.traceId));
    if (!found || this.desk.signal.aborted) return;
    this.revealed = new Revealed(this.desk, found);
    this.desk.showLower("judges");
    this.desk.draw();
  }
}
