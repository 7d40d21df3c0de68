// The head of the desk: title, state, progress, what is saved, goal and final answer.

import { keyHint } from "./keys.mjs";
import { el, meaningOf, replaceIn, showText } from "./page.mjs";
import { durationText } from "./spans.mjs";
import { countText } from "./text.mjs";

export class Head {
  constructor(desk) {
    this.desk = desk;
  }

  toggleTop(name) {
    const strip = this.desk.part(name);
    strip.classList.toggle("tj-open");
    this.desk.part(name + "-toggle").setAttribute("aria-expanded", String(strip.classList.contains("tj-open")));
  }

  draw() {
    const { review } = this.desk.work.state;
    const { queue } = this.desk.data;
    this.desk.part("title").textContent = this.desk.traceId;
    this.desk.part("title").title = `${this.desk.trace.doc.format} trace ${this.desk.traceId}`;
    this.desk.root.classList.toggle("tj-is-locked", this.desk.work.isLocked);
    const isDone = review.status !== "open";
    const isRevealed = this.desk.work.phase === "revealed";
    this.desk.part("status").textContent = this.desk.data.read_only ? "read only" : isRevealed ? "revealed" : review.status === "submitted" ? "submitted" : review.status === "skipped" ? "skipped" : this.blindText();
    this.desk.part("status").dataset.status = this.desk.data.read_only ? "read" : review.status === "open" || isRevealed ? (this.desk.work.state.seen?.length ? "revealed" : this.desk.work.phase) : review.status;
    this.desk.part("status").title = (review.status === "open" && this.blindTitle()) || meaningOf(this.desk.part("status").textContent) || "";
    this.desk.part("submit").hidden = this.desk.data.read_only || (isDone && !isRevealed) || (isRevealed && Boolean(queue) && !queue.has_next);
    this.desk.part("reveal").hidden = this.desk.data.read_only || review.status !== "submitted" || isRevealed || this.desk.submission.isBusy;
    this.desk.part("skip").hidden = this.desk.data.read_only || isDone;
    this.desk.part("reopen").hidden = this.desk.data.read_only || !isDone || this.desk.work.phase === "revealed" || this.desk.submission.isBusy;
    this.desk.part("submit").disabled = this.desk.submission.isBusy;
    this.desk.part("submit").textContent = this.desk.submission.isBusy ? "Saving…" : isRevealed ? "Next" : "Submit";
    this.desk.part("submit").title = `${isRevealed ? "Next trace" : "Check, save and submit"} (${keyHint("submit")})`;
    this.desk.part("previous").disabled = queue ? !queue.has_previous : false;
    this.desk.part("next").disabled = queue ? !queue.has_next : false;
    this.desk.part("undo").disabled = this.desk.work.isLocked || !this.desk.work.history.past.length;
    this.desk.part("redo").disabled = this.desk.work.isLocked || !this.desk.work.history.future.length;
    this.desk.part("pretty").setAttribute("aria-pressed", String(!this.desk.isPretty));
    this.drawQueue(queue);
  }

  /** "blind", or what was seen first of judges and others, and when. */
  blindText() {
    const [first] = this.desk.work.state.seen || [];
    return first ? `not blind: ${first.what} opened ${clockText(first.at)}` : this.desk.work.phase;
  }

  blindTitle() {
    const seen = this.desk.work.state.seen || [];
    if (!seen.length) return "You have not seen judges' findings or other people's labels of this trace";
    return `Your labels of this trace are stored as not blind. You saw: ${seen.map(({ what, at }) => `${what} (${new Date(at / 1000).toLocaleString()})`).join(", ")}`;
  }

  drawQueue(queue) {
    const host = this.desk.part("queue");
    if (!queue) return replaceIn(host);
    const isShared = queue.team_total > 0; // a count of one's own places would tell how many are hidden repeats
    const bars = [["yours", queue.done, queue.total, isShared ? `${percent(queue.done, queue.total)} done` : `${queue.done} of ${queue.total} done`]];
    if (isShared) bars.push(["team", queue.team_done, queue.team_total, `team: ${queue.team_done} of ${queue.team_total} done`]);
    return replaceIn(
      host,
      ...bars.map(([name, done, total, text]) =>
        el("span", { class: "tj-progress", title: name === "team" ? text : `yours: ${text}` }, el("span", { text }), el("progress", { max: Math.max(1, total), value: done, "aria-label": `Progress, ${name}` })),
      ),
      queue.left_ms ? leftText(queue.left_ms) : null,
      queue.due ? dueText(queue.due) : null,
    );
  }

  drawSaved() {
    const { outbox } = this.desk.work;
    const typing = (this.desk.cards?.typing ? 1 : 0) + (this.desk.scores?.typing ? 1 : 0);
    const unsaved = outbox.pending + typing;
    const button = this.desk.part("saved");
    const kind = outbox.parked.length || (outbox.isClosed && unsaved) ? "refused" : unsaved && outbox.failures ? "waiting" : unsaved ? "sending" : "saved";
    const time = outbox.savedAt ? new Date(outbox.savedAt).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" }) : "";
    const text = { refused: outbox.isClosed ? `account deactivated, ${unsaved} unsaved` : `${outbox.parked.length} refused`, waiting: `${unsaved} unsaved, retrying`, sending: `${unsaved} unsaved`, saved: time ? `saved ${time}` : "all saved" }[kind];
    if (button.dataset.kind === kind && button.lastChild.textContent === text) return;
    button.dataset.kind = kind;
    button.dataset.unsaved = unsaved;
    button.lastChild.textContent = text;
    button.title = outbox.problem || (kind === "saved" ? "All labels are saved" : "Unsaved changes stay in this browser until the server saves them");
  }

  drawTop() {
    for (const [name, number] of [["goal", this.desk.trace.doc.goal], ["answer", this.desk.trace.doc.answer]]) {
      const text = number === null ? null : this.desk.trace.textOf(number);
      this.desk.part(name).classList.toggle("tj-absent", text === null);
      const host = this.desk.part(name + "-text");
      if (text) showText(host, text.loaded, {});
      else host.textContent = name === "goal" ? "The trace records no goal" : "The trace records no final answer";
    }
    const times = this.desk.trace.spans.duration.map((each, seq) => (this.desk.trace.spans.start[seq] || 0) + (each || 0));
    const whole = times.reduce((most, each) => Math.max(most, each), 0);
    const facts = [`${countText(this.desk.trace.spans.size)} span${this.desk.trace.spans.size === 1 ? "" : "s"}`, durationText(whole), this.desk.trace.doc.format, this.desk.trace.doc.clock === "sim" ? "simulated clock" : ""].filter(Boolean);
    this.desk.part("facts").textContent = facts.join(" · ");
    const { warnings } = this.desk.trace.doc;
    const host = this.desk.part("warnings");
    host.hidden = !warnings.length;
    host.textContent = `${warnings.length} warning${warnings.length > 1 ? "s" : ""}`;
    host.title = warnings.join("\n");
  }
}

function percent(done, total) {
  return `${total ? Math.floor((100 * done) / total) : 100} %`;
}

/** How long the rest of the queue takes; no count of places, which would tell how many are hidden repeats. */
function leftText(milliseconds) {
  const minutes = Math.max(1, Math.round(milliseconds / 60000));
  const text = minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
  return el("span", { class: "tj-due", title: "Estimated from the median of your active time per trace in this queue", text: `about ${text} left` });
}

/** When the queue is wanted; said more loudly once that is past. */
function dueText(due) {
  const isOver = Date.now() > due;
  const day = new Date(due).toLocaleDateString([], { day: "numeric", month: "short" });
  return el("span", { class: isOver ? "tj-due tj-due-over" : "tj-due", title: new Date(due).toLocaleString(), text: isOver ? `was due ${day}` : `due ${day}` });
}

function clockText(at) {
  return new Date(at / 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}
