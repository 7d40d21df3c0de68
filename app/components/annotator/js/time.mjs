// The time that the person has worked on this trace.

import { recall, remember } from "./page.mjs";

const TJ_IDLE = 60000; // milliseconds without a sign of the person: the timer stands still

export class ActiveTime {
  constructor(desk) {
    this.desk = desk;
    this.start();
  }

  start() {
    this.activeMs = Math.max(recall(this.name, 0), this.desk.work.state.review.active_ms || 0);
    this.lastSign = this.countedTo = Date.now();
    const timer = setInterval(() => {
      this.count();
      remember(this.name, Math.round(this.activeMs));
      const seconds = Math.floor(this.activeMs / 1000);
      this.desk.part("timer").textContent = String(Math.floor(seconds / 60)).padStart(2, "0") + ":" + String(seconds % 60).padStart(2, "0");
    }, 1000);
    this.desk.signal.addEventListener("abort", () => clearInterval(timer));
  }

  get name() {
    return `tj:time:${this.desk.user}:${this.desk.traceId}`;
  }

  /** Add what passed since the last count: at each tick, and at an act, whose last part of a second counts too. */
  count() {
    const now = Date.now();
    const isActive = !document.hidden && now - this.lastSign < TJ_IDLE && !this.desk.work.isLocked && this.desk.work.phase === "blind";
    if (isActive) this.activeMs += Math.min(now - this.countedTo, 2000);
    this.countedTo = now;
  }
}
