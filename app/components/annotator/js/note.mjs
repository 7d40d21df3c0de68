// The note on another machine's changes: it takes no focus and asks nothing.

import { clashText, differenceText, lastWord, takingTheirs } from "./merge.mjs";
import { el, replaceIn } from "./page.mjs";

export class MergeNote {
  constructor(desk) {
    this.desk = desk;
  }

  add(entries) {
    this.desk.work.outbox.notes.push(...entries);
    this.draw();
  }

  draw() {
    const host = this.desk.part("note");
    const { notes } = this.desk.work.outbox;
    host.hidden = !notes.length;
    if (!notes.length) return replaceIn(host);
    const close = el("button", { class: "tj-quiet", text: "Close", "aria-label": "Close the note", on: { click: () => this.drop(() => true) } });
    const items = notes.slice(-20).map((entry) => this.item(entry));
    return replaceIn(host, el("header", {}, el("b", { text: "Changed on another machine" }), close), el("ul", {}, ...items));
  }

  item(entry) {
    const { clash, change } = entry;
    const place = this.placeName((clash || change).operation);
    if (change) return el("li", { text: differenceText(change, place) });
    const text = clashText(lastWord(clash, this.desk.work.later || this.desk.work.state), place);
    const take = takingTheirs(clash, this.desk.work.state) && el("button", { class: "tj-quiet", text: "Take the other machine’s", on: { click: () => this.takeTheirs(entry) } });
    return el("li", {}, el("span", { text: text + " " }), take);
  }

  takeTheirs(entry) {
    this.desk.work.settle();
    const operation = takingTheirs(entry.clash, this.desk.work.state);
    if (operation && this.desk.work.act(operation.kind, operation.payload)) this.drop((other) => other === entry);
  }

  drop(isDropped) {
    this.desk.work.outbox.notes = this.desk.work.outbox.notes.filter((entry) => !isDropped(entry));
    this.draw();
  }

  placeName({ kind, payload }) {
    if (kind === "score.put") return `Score ${payload.dimension}`;
    if (kind === "review.put") return "This trace";
    const at = (this.desk.work.later || this.desk.work.state).errors.findIndex((error) => error.label_id === payload.label_id);
    return at < 0 ? "An error" : `Error ${at + 1}`;
  }
}
