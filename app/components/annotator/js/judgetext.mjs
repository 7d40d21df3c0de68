// Judge's view: the exact text of the trace, in stretches that the browser lays out only near the view.

import { el, replaceIn } from "./page.mjs";

const TJ_STRETCH = 8000; // characters
const TJ_HEADER = /^\[S(\d+)\] .*$/gm; // at column 0 stand only headers: a trace's own text is indented

/** `text` cut at ends of lines into stretches of at least `size`; joined they are the text again. */
export function stretchesOf(text, size = TJ_STRETCH) {
  const stretches = [];
  for (let from = 0; from < text.length; ) {
    const line = text.indexOf("\n", from + size);
    const to = line < 0 || text.length - line < size / 2 ? text.length : line + 1;
    stretches.push(text.slice(from, to));
    from = to;
  }
  return stretches;
}

/** A stretch as its plain pieces and its header lines: `[text, seq or null]`. */
export function headersIn(stretch) {
  const pieces = [];
  let at = 0;
  for (const found of stretch.matchAll(TJ_HEADER)) {
    if (found.index > at) pieces.push([stretch.slice(at, found.index), null]);
    pieces.push([found[0], +found[1] - 1]);
    at = found.index + found[0].length;
  }
  if (at < stretch.length) pieces.push([stretch.slice(at), null]);
  return pieces;
}

export class JudgeText {
  constructor(desk) {
    this.desk = desk;
    this.host = desk.part("judge");
    this.isOpen = false;
    replaceIn(this.host);
    this.setOpen(false);
    this.host.onclick = (event) => {
      const header = event.target.closest("[data-header]");
      if (header && getSelection().isCollapsed) desk.place.select(+header.dataset.header);
    };
  }

  async toggle() {
    if (!this.isOpen && !this.host.firstChild && !(await this.load())) return;
    this.setOpen(!this.isOpen);
    this.desk.focusPane("text");
    if (this.isOpen) this.scrollTo(this.desk.place.current);
    else this.desk.reader.show(this.desk.place.current, this.desk.place.current);
  }

  setOpen(isOpen) {
    this.isOpen = isOpen;
    this.host.hidden = !isOpen;
    this.desk.part("text").hidden = isOpen;
    this.desk.part("judge-toggle").setAttribute("aria-pressed", String(isOpen));
    this.desk.part("pretty").disabled = isOpen;
  }

  async load() {
    const text = await this.desk.connection.fetchFrom("text/" + encodeURIComponent(this.desk.traceId), {}, (answer) => answer.text());
    if (text === null) return false;
    this.headers = new Map();
    replaceIn(this.host, ...stretchesOf(text).map((stretch) => this.stretch(stretch)));
    return true;
  }

  stretch(text) {
    const node = el("div", { class: "tj-stretch", style: `contain-intrinsic-size: auto ${rowsOf(text) * 19}px` });
    for (const [piece, seq] of headersIn(text)) {
      if (seq === null) node.append(piece);
      else node.append(this.header(piece, seq));
    }
    return node;
  }

  header(text, seq) {
    const node = el("b", { class: "tj-judge-header", "data-header": seq, text });
    this.headers.set(seq, node);
    return node;
  }

  /** Brings a span's header to the top; twice, because stretches on the way get their true height only then. */
  scrollTo(seq) {
    const node = this.isOpen && this.headers.get(seq);
    if (!node) return;
    for (const other of this.host.querySelectorAll(".tj-judge-header.tj-now")) other.classList.remove("tj-now");
    node.classList.add("tj-now");
    node.scrollIntoView({ block: "start" });
    requestAnimationFrame(() => node.scrollIntoView({ block: "start" }));
  }
}

function rowsOf(text) {
  return text.split("\n").reduce((rows, line) => rows + 1 + Math.floor(line.length / 90), 0);
}
