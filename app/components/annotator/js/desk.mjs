// The desk: puts trace, labels and panes together on the page, and tells Streamlit what it must know.

import { Comments } from "./comments.mjs";
import { Connection } from "./connection.mjs";
import { askReveal, askSkip, showKeys, showRefused } from "./dialogs.mjs";
import { TraceDocument } from "./document.mjs";
import { ErrorCards } from "./errors.mjs";
import { Head } from "./head.mjs";
import { JudgeText } from "./judgetext.mjs";
import { Keyboard } from "./keyboard.mjs";
import { completeState } from "./labels.mjs";
import { MergeNote } from "./note.mjs";
import { unsentTraces } from "./outbox.mjs";
import { el, replaceIn, say } from "./page.mjs";
import { Panes, TJ_PANES } from "./panes.mjs";
import { Place } from "./place.mjs";
import { Reader } from "./reader.mjs";
import { Scores } from "./scores.mjs";
import { Settings } from "./settings.mjs";
import { Submission } from "./submission.mjs";
import { ActiveTime } from "./time.mjs";
import { Tree } from "./tree.mjs";
import { isSending, Work } from "./work.mjs";

class Desk {
  constructor(root, component) {
    this.root = root;
    this.abort = new AbortController();
    this.signal = this.abort.signal;
    this.component = component;
    this.data = component.data;
    this.traceId = this.data.trace_id;
    this.user = this.data.user;
    this.dimensions = this.data.dimensions;
    this.dimensionKeys = this.dimensions.map((dimension) => dimension.key);
    this.pane = "text";
    this.errorId = null;
    this.isComposing = false;
    this.lower = "scores";
    this.connection = new Connection(this);
    this.settings = this.openSettings();
    this.keyboard = new Keyboard(this);
    this.takeSettings();
    this.head = new Head(this);
    this.note = new MergeNote(this);
    this.submission = new Submission(this);
    this.place = new Place(this);
    this.work = new Work(this);
    this.work.start();
    this.time = new ActiveTime(this);
  }

  part(name) {
    return this.root.querySelector(`[data-tj="${name}"]`);
  }

  openSettings() {
    const pass = () => ({ token: this.data.token, trace_id: this.traceId });
    return new Settings({
      storage: window.localStorage,
      user: this.user,
      get: () => this.connection.fetchFrom("settings", { trace_id: this.traceId }, (answer) => answer.json(), { isQuiet: true }),
      put: (body) => this.connection.withPass(() => this.connection.post("settings", { ...pass(), ...body }, "PUT")),
      changed: () => this.settingsChanged(),
      problem: (message) => say(this, message, true),
    });
  }

  async open() {
    const began = performance.now();
    this.setBusy("Opening the trace…");
    const [document_] = await Promise.all([this.connection.fetchJson("trace/" + encodeURIComponent(this.traceId)), this.settings.load()]);
    if (this.signal.aborted) return;
    if (!document_) return this.setBusy("The trace could not be loaded.", () => this.open());
    this.setBusy(null);
    this.trace = new TraceDocument(this, document_);
    this.tree = new Tree(this);
    this.tree.listen();
    this.reader = new Reader(this);
    this.cards = new ErrorCards(this);
    this.scores = new Scores(this);
    this.judgeText = new JudgeText(this);
    this.comments = new Comments(this);
    this.panes = new Panes(this);
    this.showLower("scores");
    this.tree.reader = this.reader;
    this.head.draw();
    this.head.drawTop();
    this.listen();
    this.fit();
    this.errorId = this.work.state.errors[0]?.label_id || null;
    this.draw();
    const wanted = this.trace.spans.seqOf.get(this.data.span);
    this.place.select(wanted ?? this.place.resumeSeq(), { isFirst: wanted === undefined });
    this.focusPane("text");
    this.note.draw();
    this.keyboard.drawKeys();
    this.work.outbox.flush();
    this.submission.sayWhatIsNext();
    this.tellOfOtherTraces();
    this.root.dataset.opened = Math.round(performance.now() - began); // milliseconds from here to a usable desk
    this.root.dataset.ready = this.traceId;
    if (document_.partial) this.trace.loadRest();
    if (this.work.phase === "revealed") this.submission.loadRevealed();
  }

  /** The trace has grown since it was opened: texts of one version must not stand in for those of another. */
  traceGrew() {
    this.setBusy("This trace has new spans since you opened it. Your labels are saved.", () => this.restart(), "Reopen trace");
  }

  restart() {
    this.close();
    const desk = (tjOpenDesk = new Desk(this.root, this.component));
    tjDesks.set(this.root, desk);
    delete this.root.dataset.ready;
    desk.open();
  }

  /** Work on other traces that a dead tab left unsent: it is sent when they are opened, so their names are told. */
  tellOfOtherTraces() {
    const waiting = unsentTraces(window.localStorage, this.user).filter((name) => name !== this.traceId && !isSending(this.user, name));
    if (waiting.length) say(this, `Unsent changes wait for ${waiting.length === 1 ? "trace" : "traces"} ${waiting.join(", ")}: open them to send the changes`, true);
  }

  setBusy(message, retry = null, act = "Try again") {
    const busy = this.part("busy");
    busy.hidden = message === null;
    replaceIn(busy, el("span", { text: message || "" }), retry ? el("button", { class: "tj-secondary", text: act, on: { click: retry } }) : null);
  }

  /** The lower pane shows the scores or, once revealed, what judges and others said. */
  showLower(name) {
    this.lower = this.submission.revealed ? name : "scores";
    for (const each of ["scores", "judges"]) {
      this.part(each).hidden = each !== this.lower;
      this.part(each + "-tab").setAttribute("aria-pressed", String(each === this.lower));
    }
    this.part("judges-tab").hidden = !this.submission.revealed;
  }

  showJudges() {
    if (!this.submission.revealed) return say(this, this.work.state.review.status === "submitted" ? "Choose Reveal to see the judges' findings" : "Submit this trace first; then you can reveal the judges' findings");
    this.showLower("judges");
    this.focusPane("scores");
  }

  tell(kind) {
    this.component.setTriggerValue("act", { kind, trace_id: this.traceId });
  }

  focusPane(name) {
    this.panes?.unfold(name);
    this.paneEntered(name);
    this.paneHost(name).focus({ preventScroll: true });
  }

  /** What is shown in a pane now. */
  paneHost(name) {
    if (name === "text" && this.judgeText.isOpen) return this.part("judge");
    return this.part(name === "scores" ? this.lower : name);
  }

  stepPane(step) {
    const next = TJ_PANES.indexOf(this.pane) + step;
    if (next < 0 || next >= TJ_PANES.length) return false;
    this.focusPane(TJ_PANES[next]);
    return true;
  }

  listen() {
    const options = { signal: this.signal };
    document.addEventListener("keydown", (event) => this.keyboard.key(event), { ...options, capture: true });
    for (const sign of ["pointerdown", "pointermove", "keydown", "wheel"]) document.addEventListener(sign, () => (this.time.lastSign = Date.now()), { ...options, passive: true });
    this.root.addEventListener("compositionstart", () => (this.isComposing = true), options);
    this.root.addEventListener("compositionend", () => this.composed(), options);
    window.addEventListener("online", () => this.work.outbox.nudge(), options);
    window.addEventListener("resize", () => this.fit(), options);
    window.addEventListener("beforeunload", (event) => this.leaving(event), options);
    document.addEventListener("visibilitychange", () => document.hidden && (this.work.flushTyping(), this.work.outbox.flush()), options);
    for (const name of TJ_PANES) this.part(name).closest(".tj-pane").addEventListener("focusin", () => this.paneEntered(name), options);
    this.reader.flow.addEventListener("mousedown", (event) => this.blockPressed(event), options);
    this.root.addEventListener("mousedown", (event) => event.target.closest("button.tj-toggle,button.tj-score") && event.preventDefault(), options);
    this.part("submit").onclick = () => this.submission.submit();
    this.part("skip").onclick = () => askSkip(this);
    this.part("reopen").onclick = () => this.submission.reopen();
    this.part("reveal").onclick = () => askReveal(this);
    this.part("comments").onclick = () => this.comments.open();
    this.part("judge-toggle").onclick = () => this.judgeText.toggle();
    for (const name of ["scores", "judges"]) this.part(name + "-tab").onclick = () => (this.showLower(name), this.focusPane("scores"));
    window.addEventListener("pagehide", () => (this.work.flushTyping(), this.work.keepHistory()), options);
    this.part("keys").onclick = () => showKeys(this);
    this.part("undo").onclick = () => this.work.undo();
    this.part("redo").onclick = () => this.work.redo();
    this.part("previous").onclick = () => this.tell("previous");
    this.part("next").onclick = () => this.tell("next");
    this.part("saved").onclick = () => (this.work.outbox.parked.length ? showRefused(this) : this.work.outbox.nudge());
    this.part("pretty").onclick = () => this.togglePretty();
    for (const button of this.part("panes").children) button.onclick = () => this.focusPane(button.dataset.pane);
    this.part("goal-toggle").onclick = () => this.head.toggleTop("goal");
    this.part("answer-toggle").onclick = () => this.head.toggleTop("answer");
    this.part("dialog").addEventListener("close", () => (this.focusPane(this.pane), this.work.settle()), options);
    this.root.addEventListener("focusin", (event) => this.focusEntered(event.target), options);
    this.root.addEventListener("focusout", (event) => this.focusLeft(event.relatedTarget), options);
    document.addEventListener("focusin", (event) => this.refuseConnectionDialog(event.target.closest?.('[role="dialog"]')), { ...options, capture: true });
  }

  /** While one works here the desk counts as above Streamlit's dialogs: none makes it inert or takes its keys. */
  focusEntered(target) {
    this.lastFocus = target;
    this.keyboard.drawHints();
    this.root.setAttribute("data-react-aria-top-layer", "true");
  }

  focusLeft(to) {
    setTimeout(() => this.work.settle());
    if (to && !to.closest('[role="dialog"]')) this.root.removeAttribute("data-react-aria-top-layer");
  }

  /** Streamlit's word that the server is away closes: the desk says so itself, keeps everything and goes on. */
  refuseConnectionDialog(dialog) {
    if (!dialog || this.root.contains(dialog) || dialog.querySelector('[slot="title"]')?.textContent !== "Connection error") return;
    const field = this.lastFocus?.isConnected ? this.lastFocus : this.paneHost(this.pane);
    field.focus({ preventScroll: true });
    dialog.querySelector("button")?.click();
  }

  composed() {
    this.isComposing = false;
    if (this.isDrawLate) setTimeout(() => this.draw()); // after the input event that brings the composed words
  }

  paneEntered(name) {
    this.pane = name;
    this.keyboard.drawHints();
    for (const pane of TJ_PANES) this.part(pane).closest(".tj-pane").classList.toggle("tj-focused", pane === name);
    for (const button of this.part("panes").children) button.setAttribute("aria-pressed", String(button.dataset.pane === name));
  }

  blockPressed(event) {
    const block = event.target.closest("[data-block]");
    if (block && !event.target.closest("button")) this.place.select(+block.dataset.block, { keepScroll: true });
  }

  leaving(event) {
    this.work.flushTyping();
    if (this.work.outbox.pending && !this.work.outbox.isKeptLocally) event.preventDefault();
  }

  togglePretty() {
    this.settings.set({ pretty: !this.isPretty });
  }

  takeSettings() {
    this.isPretty = this.settings.values.pretty;
    this.keyboard.takeSettings();
  }

  settingsChanged() {
    const wasPretty = this.isPretty;
    this.takeSettings();
    if (this.reader) this.keyboard.drawKeys();
    this.panes?.draw();
    if (this.reader && wasPretty !== this.isPretty) this.redrawTexts();
  }

  redrawTexts() {
    this.part("pretty").setAttribute("aria-pressed", String(!this.isPretty));
    for (const group of this.reader.groups) {
      if (!group.isDrawn) continue;
      for (let seq = group.first; seq < group.last; seq++) this.reader.redraw(seq);
    }
    this.reader.loadLayouts();
    this.reader.scrollTo(this.reader.blockNode(this.place.current));
  }

  draw() {
    if (!this.reader) return;
    this.isDrawLate = this.isComposing;
    if (this.isComposing) return; // a field that is drawn anew would lose what an input method is composing
    this.work.flushTyping(); // and what is being typed
    this.cards.draw();
    this.scores.draw();
    this.tree.only.has("labelled") ? this.tree.refresh() : this.tree.schedule();
    this.tree.drawMarks();
    this.reader.scheduleMarks();
    this.head.draw();
    this.head.drawSaved();
    this.submission.drawMissing();
  }

  /** The desk fills the window from where it stands. */
  fit() {
    const top = this.root.getBoundingClientRect().top + window.scrollY;
    this.root.style.setProperty("--tj-height", Math.max(460, window.innerHeight - Math.max(0, top) - 8) + "px");
    const probe = getComputedStyle(this.root).getPropertyValue("--st-background-color").trim();
    this.root.dataset.scheme = isDark(probe) ? "dark" : "light";
    const size = `${window.innerWidth} ${window.innerHeight} ${Math.round(top)} ${this.root.dataset.scheme}`;
    if (!this.tree || size === this.fitted) return;
    this.fitted = size;
    const width = this.tree.mapWidth(); // measured before anything is drawn anew
    this.tree.draw();
    this.tree.drawMap(width);
  }

  /** The script ran again: a fresh pass or queue; the person's work is not touched. */
  update(component) {
    const isFresh = component.data.token !== this.data.token;
    this.component = component;
    this.data = component.data;
    if (isFresh) {
      this.connection.renewLater();
      this.connection.passArrived(true);
    }
    this.work.takeNewer(completeState(this.data.state));
    this.work.state = { ...this.work.state, seen: completeState(this.data.state).seen };
    if (isFresh && this.work.outbox.isWaitingForToken) this.work.outbox.renewed();
    if (!this.reader) return;
    this.fit();
    this.draw();
  }

  close() {
    if (this.signal.aborted) return;
    this.work.keepHistory();
    if (this.reader) {
      this.work.flushTyping();
      this.reader.close();
    }
    this.abort.abort();
  }
}

function isDark(color) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = color || "#ffffff";
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

const tjDesks = new WeakMap();
let tjOpenDesk = null; // the one on the page

export default function (component) {
  const { parentElement, data } = component;
  const root = parentElement.querySelector(".tj-desk");
  const known = tjDesks.get(root);
  if (known && known.traceId === data.trace_id && known.user === data.user && known.data.read_only === data.read_only) {
    known.update(component);
  } else {
    known?.close();
    tjOpenDesk?.close(); // its place in the page may be gone before it knows: what is typed there goes into the outbox first
    const desk = (tjOpenDesk = new Desk(root, component));
    tjDesks.set(root, desk);
    delete root.dataset.ready;
    desk.open();
  }
  // Streamlit also calls this for a run that a newer one has overtaken: only a desk that left the page is closed.
  return () => setTimeout(() => closeWhenGone(root));
}

function closeWhenGone(root) {
  if (root.isConnected) return;
  tjDesks.get(root)?.close();
  tjDesks.delete(root);
}
