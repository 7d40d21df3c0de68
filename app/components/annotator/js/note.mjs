// The note on another machine's changes: it takes no focus and asks nothing.

import { noteText, takingTheirs } from "./merge.mjs";
import { el, replaceIn } from "./page.mjs";

export class MergeNote {
  constructor(desk) {
    this.desk = desk;
  }

  add(entries) {
    this.desk.work.outbox.addNotes(entries);
    this.draw();
  }

  draw() {
    const host = this.desk.part("note");
    const items = this.desk.work.outbox.notes.map((note) => this.item(note)).filter(Boolean).slice(-20);
    host.hidden = !items.length;
    if (!items.length) return replaceIn(host);
    const close = el("button", { class: "tj-quiet", text: "Close", "aria-label": "Close the note", on: { click: () => this.drop(() => true) } });
    return replaceIn(host, el("header", {}, el("b", { text: "Changed on another machine" }), close), el("ul", {}, ...items));
  }

  item(note) {
    const { clash, change } = note.entry;
    const text = noteText(note.entry, this.desk.work.later || this.desk.work.state, this.placeName((clash || change).operation));
    if (text === null) return null;
    const take = clash && takingTheirs(clash, this.desk.work.state) && el("button", { class: "tj-quiet", text: "Use the other machine’s value", on: { click: () => this.takeTheirs(note) } });
    return el("li", {}, el("span", { text: text + " " }), take);
  }

  takeTheirs(note) {
    this.desk.work.settle();
    const operation = takingTheirs(note.entry.clash, this.desk.work.state);
    if (operation && this.desk.work.act(operation.kind, operation.payload)) this.drop((other) => other === note);
  }

  drop(isDropped) {
    this.desk.work.outbox.dropNotes(isDropped);
    this.draw();
  }

  placeName({ kind, payload }) {
    if (kind === "score.put") return `Score ${payload.dimension}`;
    if (kind === "review.put") return "This trace";
    const at = (this.desk.work.later || this.desk.work.state).errors.findIndex((error) => error.label_id === payload.label_id);
    return at < 0 ? "An error" : `Error ${at + 1}`;
  }
}
