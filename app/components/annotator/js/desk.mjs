// The desk: holds trace, labels and outbox together, turns keys into acts, and tells Streamlit what it must know.

import { askReveal, askSkip, showGuideline, showKeys, showRefused } from "./dialogs.mjs";
import { ErrorCards } from "./errors.mjs";
import { isTyping, keyHint, keyTable, pressedKey, TJ_HINTS, TJ_KEYS } from "./keys.mjs";
import { JudgeText } from "./judgetext.mjs";
import { applyOperation, completeState, fingerprint, History, inverseOf, missingFields } from "./labels.mjs";
import { clashText, differences, differenceText, lastWord, rebased, rebasedAll, subjectOf, takingTheirs } from "./merge.mjs";
import { Outbox, unsentTraces } from "./outbox.mjs";
import { copyText, el, meaningOf, replaceIn, say, showText } from "./page.mjs";
import { Panes } from "./panes.mjs";
import { Reader } from "./reader.mjs";
import { Revealed } from "./revealed.mjs";
import { Scores } from "./scores.mjs";
import { Settings } from "./settings.mjs";
import { durationText, peerOf, SpanIndex, TJ_KINDS } from "./spans.mjs";
import { countText } from "./text.mjs";
import { Tree } from "./tree.mjs";

const TJ_PANES = ["tree", "text", "errors", "scores"];
const TJ_IDLE = 60000; // milliseconds without a sign of the person: the timer stands still
const TJ_PATIENCE = 4000; // milliseconds that submitting waits for the store before it says so and lets one go on
const TJ_ASK_AGAIN = 3000; // milliseconds after which a pass that did not come is asked for again
const TJ_PASS_PATIENCE = 20000; // milliseconds that a reading waits for a fresh pass
const tjOutboxes = new Map(); // they go on sending when the page shows another trace
const tjHistories = new Map();
let tjFinished = null; // what was submitted or skipped last, until the next trace is there
const TJ_BUTTON_KEYS = { previous: "previousItem", next: "nextItem", undo: "undo", redo: "redo", keys: "help", skip: "skip", pretty: "pretty", "judge-toggle": "judgeText", "goal-toggle": "goal", "answer-toggle": "answer", "judges-tab": "judges", submit: "submit" };

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
    this.isBusy = false;
    this.isComposing = false;
    this.lower = "scores";
    this.later = null; // what another machine's changes make of the labels, while a field is being typed in
    this.revealed = null;
    this.settings = this.openSettings();
    this.takeSettings();
    this.outbox = this.openOutbox();
    this.state = this.startState();
    this.setHistory(tjHistories.get(this.user + this.traceId) || this.keptHistory());
    this.startTimer();
    this.passWaiters = [];
    this.renewLater();
    this.signal.addEventListener("abort", () => this.passArrived(false));
  }

  part(name) {
    return this.root.querySelector(`[data-tj="${name}"]`);
  }

  // ---- opening -----------------------------------------------------------------------------------------------

  openOutbox() {
    const name = this.user + " " + this.traceId;
    const known = tjOutboxes.get(name);
    const send = (body) => this.post("ops", { token: this.data.token, trace_id: this.traceId, ...body });
    const outbox = known || new Outbox({ storage: window.localStorage, prefix: `tj:op:${this.user}:${this.traceId}:`, send });
    outbox.send = send;
    outbox.meet = (state) => this.meet(completeState(state));
    outbox.changed = () => this.outboxChanged();
    outbox.isWaitingForToken = false; // the pass of this desk is new
    tjOutboxes.set(name, outbox);
    return outbox;
  }

  openSettings() {
    const pass = () => ({ token: this.data.token, trace_id: this.traceId });
    return new Settings({
      storage: window.localStorage,
      user: this.user,
      get: () => this.fetchFrom("settings", { trace_id: this.traceId }, (answer) => answer.json(), { isQuiet: true }),
      put: (body) => this.withPass(() => this.post("settings", { ...pass(), ...body }, "PUT")),
      changed: () => this.settingsChanged(),
      problem: (message) => say(this, message, true),
    });
  }

  /** Whether the judges' findings have been shown: what is labelled from then on is marked. */
  get phase() {
    return this.state.review.revealed ? "revealed" : "blind";
  }

  /** What the server holds, with what has not reached it on top. */
  startState() {
    const state = completeState(this.data.state); // the page may give an older one than this tab has seen
    return { ...this.onTopOf(this.outbox.learn(state)).state, seen: state.seen };
  }

  async open() {
    const began = performance.now();
    this.setBusy("Opening the trace…");
    const [document_] = await Promise.all([this.fetchJson("trace/" + encodeURIComponent(this.traceId)), this.settings.load()]);
    if (this.signal.aborted) return;
    if (!document_) return this.setBusy("The trace could not be loaded.", () => this.open());
    this.setBusy(null);
    this.takeDocument(document_);
    this.tree = new Tree(this);
    this.tree.listen();
    this.reader = new Reader(this);
    this.cards = new ErrorCards(this);
    this.scores = new Scores(this);
    this.judgeText = new JudgeText(this);
    this.panes = new Panes(this);
    this.showLower("scores");
    this.tree.reader = this.reader;
    this.drawHead();
    this.drawTop();
    this.listen();
    this.fit();
    this.errorId = this.state.errors[0]?.label_id || null;
    this.draw();
    const wanted = this.spans.seqOf.get(this.data.span);
    this.select(wanted ?? this.resumeSeq(), { isFirst: wanted === undefined });
    this.focusPane("text");
    this.drawNote();
    this.drawKeys();
    this.outbox.flush();
    this.sayWhatIsNext();
    this.tellOfOtherTraces();
    this.root.dataset.opened = Math.round(performance.now() - began); // milliseconds from here to a usable desk
    this.root.dataset.ready = this.traceId;
    if (document_.partial) this.loadRest();
    if (this.phase === "revealed") this.loadRevealed();
  }

  /** After a submission: that it is stored, and which trace this is. */
  sayWhatIsNext() {
    if (tjFinished && tjFinished.traceId !== this.traceId) say(this, `${tjFinished.word}. Next: trace ${this.traceId}`);
    tjFinished = null;
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
    const isSending = (box) => box?.pending && !box.isWaitingForToken; // without a pass nothing goes until it is opened
    const waiting = unsentTraces(window.localStorage, this.user).filter((name) => name !== this.traceId && !isSending(tjOutboxes.get(this.user + " " + name)));
    if (waiting.length) say(this, `Unsent changes wait for ${waiting.length === 1 ? "trace" : "traces"} ${waiting.join(", ")}: open them to send the changes`, true);
  }

  /** A long trace opens with its outline; plans, warnings and the first texts come when it has been read. */
  async loadRest() {
    const rest = await this.fetchJson("trace/" + encodeURIComponent(this.traceId), { rest: 1 });
    if (this.signal.aborted) return;
    if (rest && rest.digest !== this.doc.digest) return this.traceGrew();
    if (rest) {
      this.doc = { ...rest, blocks: rest.blocks };
      this.plans = new Set(rest.plans);
      for (const [number, text] of Object.entries(rest.texts)) this.texts.set(+number, text);
      for (const block of rest.blocks) this.blocks[block.seq] = block;
    }
    this.restArrived();
    this.tree.draw();
    for (const group of this.reader.groups) if (group.isDrawn) this.reader.refill(group);
  }

  takeDocument(doc) {
    this.doc = doc;
    this.spans = new SpanIndex({ ...doc.spans, names: doc.names, agents: doc.agents, tools: doc.tools });
    this.models = doc.models;
    this.plans = new Set(doc.plans);
    this.texts = new Map(Object.entries(doc.texts).map(([number, text]) => [+number, text]));
    this.blocks = new Array(this.spans.size);
    for (const block of doc.blocks) this.blocks[block.seq] = block;
    this.current = 0;
    this.rest = new Promise((arrived) => (this.restArrived = arrived));
    if (!doc.partial) this.restArrived();
  }

  resumeSeq() {
    const labelled = this.state.errors.at(-1)?.span_ids.at(-1); // of a browser that has not seen this draft
    return this.spans.seqOf.get(recall(`tj:span:${this.user}:${this.traceId}`, null)) ?? this.spans.seqOf.get(labelled) ?? 0;
  }

  setBusy(message, retry = null, act = "Try again") {
    const busy = this.part("busy");
    busy.hidden = message === null;
    replaceIn(busy, el("span", { text: message || "" }), retry ? el("button", { class: "tj-secondary", text: act, on: { click: retry } }) : null);
  }

  // ---- the server --------------------------------------------------------------------------------------------

  url(path, query = {}) {
    const parameters = new URLSearchParams({ token: this.data.token, ...query });
    return `${this.data.base}/api/${path}?${parameters}`;
  }

  fetchJson(path, query) {
    return this.fetchFrom(path, query, (answer) => answer.json());
  }

  // ---- the pass: short-lived, renewed while the page is open and the person is signed in ------------------------

  /** Asks for another pass at half the life of this one. */
  renewLater() {
    this.isAskingForPass = false;
    clearTimeout(this.passTimer);
    this.passTimer = setTimeout(() => this.renew(), (this.data.token_s || 1200) * 500);
  }

  /** Asks until one comes: a word to a server that is away is lost. */
  renew() {
    clearTimeout(this.passTimer);
    if (this.signal.aborted) return;
    this.isAskingForPass = true;
    this.tell("renew");
    this.passTimer = setTimeout(() => this.renew(), TJ_ASK_AGAIN);
  }

  /** True once another pass is here; false when none came in time. */
  freshPass() {
    if (!this.isAskingForPass) this.renew();
    return new Promise((done) => {
      this.passWaiters.push(done);
      setTimeout(() => done(false), TJ_PASS_PATIENCE);
    });
  }

  /** Asks; once more with a fresh pass where this one has run out. */
  async withPass(ask) {
    const answer = await ask();
    return answer.status === 401 && (await this.freshPass()) ? ask() : answer;
  }

  passArrived(isFresh) {
    for (const done of this.passWaiters.splice(0)) done(isFresh);
  }

  /** The answer to a GET as `read` takes it; null, and said why, where there is none. */
  async fetchFrom(path, query, read, { isQuiet = false } = {}) {
    try {
      const answer = await this.withPass(() => fetch(this.url(path, query), { signal: this.signal }));
      if (answer.ok) return await read(answer);
      if (isQuiet) return null;
      const problem = await answer.json().catch(() => ({}));
      say(this, problem.error || `The server answered ${answer.status}`, true);
    } catch (error) {
      if (!this.signal.aborted && !isQuiet) say(this, "No connection to the server", true);
    }
    return null;
  }

  async post(path, body, method = "POST") {
    const text = JSON.stringify(body);
    const answer = await fetch(`${this.data.base}/api/${path}`, {
      method,
      headers: { "Content-Type": "application/json" },
      body: text,
      keepalive: text.length < 60000, // also while the tab is being closed
      signal: AbortSignal.timeout(20000),
    });
    return { status: answer.status, body: await answer.json().catch(() => ({})) };
  }

  /** Loads blocks that are not here yet (`whole`: with their long texts in full). */
  async loadBlocks(first, count, whole = false) {
    await this.rest;
    const answer = await this.fetchJson(`span/${encodeURIComponent(this.traceId)}/${first}`, { count, ...(whole ? { whole: 1 } : {}) });
    if (!answer) return false;
    if (answer.digest !== this.doc.digest) {
      this.traceGrew();
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

  // ---- acts --------------------------------------------------------------------------------------------------

  get isLocked() {
    return this.data.read_only || (this.state.review.status !== "open" && this.phase !== "revealed");
  }

  /** Blind labels are closed once the judges' errors have been seen. */
  isClosedLabel(error) {
    return this.isLocked || (this.phase === "revealed" && error.phase === "blind");
  }

  newId() {
    return crypto.randomUUID ? crypto.randomUUID() : [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  /** One act of the person: shown, remembered for undo, and on its way to the store. */
  act(kind, payload, merge = null) {
    if (this.isLocked && kind !== "review.put") {
      say(this, this.data.read_only ? "This page is read-only" : "This trace is finished. Reopen it to change labels");
      return false;
    }
    const operation = { kind, payload, before: subjectOf(this.state, { kind, payload }) };
    const undo = { ...inverseOf(this.state, operation), before: kind === "error.delete" ? null : payload };
    this.history.record({ undo, redo: operation, merge });
    this.perform(operation);
    return true;
  }

  perform({ kind, payload, before = subjectOf(this.state, { kind, payload }) }) {
    if (kind === "score.put") payload = { ...payload, phase: this.phase };
    const operation = { kind, payload, before };
    this.state = applyOperation(this.state, operation);
    const sent = this.later ? this.performLater(operation) : operation;
    if (sent) {
      const form = kind === "review.put" ? reviewForm(sent.payload) : sent.payload;
      this.outbox.add({ op_id: this.newId(), ...sent, payload: form, client_time: new Date().toISOString() });
    }
    if (this.outbox.notes.length) this.drawNote(); // it says what is here now
    this.keepHistorySoon();
    this.draw();
  }

  /** The operation on what another machine stored, which the screen does not show yet. */
  performLater(operation) {
    const { state, operations, clashes } = rebasedAll([operation], this.later, this.dimensionKeys);
    this.later = state;
    this.note(clashes.map((clash) => ({ clash })));
    return operations[0];
  }

  setHistory(history) {
    this.history = history;
    tjHistories.set(this.user + this.traceId, history);
  }

  /** Undo reaches back over a reload of this tab, as long as nothing else has changed the work since. */
  keptHistory() {
    return History.restored(recall(this.historyName, null, window.sessionStorage), fingerprint(this.state));
  }

  get historyName() {
    return `tj:history:${this.user}:${this.traceId}`;
  }

  keepHistorySoon() {
    clearTimeout(this.historyTimer);
    this.historyTimer = setTimeout(() => this.keepHistory(), 400);
  }

  keepHistory() {
    clearTimeout(this.historyTimer);
    remember(this.historyName, this.history.saved(fingerprint(this.state)), window.sessionStorage);
  }

  undo() {
    this.flushTyping();
    this.history.seal();
    const step = this.isLocked ? null : this.history.undo();
    if (!step) return say(this, "Nothing to undo");
    this.performStep(step.undo);
  }

  redo() {
    const step = this.isLocked ? null : this.history.redo();
    if (!step) return say(this, "Nothing to redo");
    this.performStep(step.redo);
  }

  /** A step changes the fields that it changed when it was made, and no others. */
  performStep(step) {
    const { operation, clashes } = rebased(step, this.state);
    this.note(clashes.map((clash) => ({ clash })));
    if (operation) this.perform(operation);
    this.showStep(step);
  }

  showStep({ kind, payload }) {
    if (kind === "error.put") this.errorId = payload.label_id;
    if (kind === "error.delete" && this.errorId === payload.label_id) this.errorId = this.state.errors[0]?.label_id || null;
    if (kind === "score.put") this.scores.row = Math.max(0, this.dimensionKeys.indexOf(payload.dimension));
    this.draw();
  }

  flushTyping() {
    this.cards.flushTyping();
    this.scores.flushTyping();
  }

  reviewWith(changes) {
    this.countTime();
    return { ...this.state.review, active_ms: Math.round(this.activeMs), ...changes };
  }

  // ---- submit and skip ---------------------------------------------------------------------------------------

  submit() {
    this.flushTyping();
    if (this.data.read_only || this.isBusy) return;
    const missing = missingFields(this.state, this.dimensionKeys);
    if (this.phase === "revealed") {
      const late = missing.find(({ place }) => place === "error"); // the blind answer is submitted already
      return late ? this.showMissing(late) : this.tell("next");
    }
    if (this.state.review.status === "submitted") return this.tell("next");
    if (missing.length) {
      this.isMissingListed = true;
      this.drawMissing();
      return this.showMissing(missing[0]);
    }
    return this.finish("submitted", "");
  }

  /** What a failed submission lacked and still lacks, by name; each entry leads there. */
  drawMissing() {
    const host = this.part("missing");
    const missing = this.isMissingListed && !this.isLocked ? missingFields(this.state, this.dimensionKeys) : [];
    this.isMissingListed = missing.length > 0;
    host.hidden = !missing.length;
    const entry = (one) => el("button", { class: "tj-link", title: one.message, text: this.missingName(one), on: { click: () => this.showMissing(one) } });
    replaceIn(host, el("b", { text: `Not submitted. ${missing.length === 1 ? "One answer is" : `${missing.length} answers are`} missing:` }), ...missing.map(entry));
  }

  missingName({ place, dimension, short }) {
    return place === "score" ? `Score of ${this.dimensions.find(({ key }) => key === dimension).title}` : short;
  }

  showMissing(missing) {
    say(this, missing.place === "score" ? `${this.missingName(missing)} is missing` : missing.message, true);
    if (missing.place === "error") {
      this.cards.choose(missing.label_id);
      this.focusPane("errors");
      (this.part("errors").querySelector(`.tj-card.tj-now [data-field="${missing.field}"] button`) || this.part("errors").querySelector(`.tj-card.tj-now [data-field="${missing.field}"]`))?.focus();
    } else if (missing.place === "score") {
      this.scores.choose(this.dimensionKeys.indexOf(missing.dimension));
      this.focusPane("scores");
      this.part("scores").querySelector(`[data-dimension="${missing.dimension}"] [data-score]`)?.focus({ preventScroll: true });
    } else {
      this.focusPane("errors");
      this.part("errors").querySelector('[data-hold="no-error"]')?.focus();
    }
  }

  /** Stores the end of the work and moves on once everything has arrived; until then the item stays. */
  async finish(status, reason) {
    this.flushTyping();
    this.perform({ kind: "review.put", payload: this.reviewWith({ status, reason }) });
    this.isBusy = true;
    this.drawHead();
    const isStored = await this.drained(TJ_PATIENCE);
    this.isBusy = false;
    this.settle();
    this.drawHead();
    if (this.state.review.status !== status) return undefined; // another machine's changes came first: the note says so
    if (isStored) {
      const word = status === "skipped" ? "Skipped" : "Submitted";
      if (this.data.queue && !this.data.queue.has_next) say(this, `${word}. This was the last trace`);
      tjFinished = { word, traceId: this.traceId };
      return this.tell(status);
    }
    const { isClosed, problem } = this.outbox;
    say(this, `Not saved yet: ${isClosed ? problem : "your changes stay in this browser and are sent when the server answers"}`, true);
    return undefined;
  }

  reopen() {
    this.perform({ kind: "review.put", payload: this.reviewWith({ status: "open", reason: "" }) });
    this.drawHead();
  }

  // ---- reveal ------------------------------------------------------------------------------------------------

  /** Asks the server to show what judges and others said; from then on the blind labels are closed. */
  async reveal() {
    if (!(await this.drained(TJ_PATIENCE))) return say(this, "Some changes are not saved yet: choose Reveal after they are saved", true);
    this.setHistory(new History());
    this.perform({ kind: "reveal", payload: {} });
    if (await this.drained(TJ_PATIENCE)) return this.loadRevealed();
    return say(this, "Not revealed yet: the findings appear when the server answers", true);
  }

  async loadRevealed() {
    const found = await this.fetchJson("reveal/" + encodeURIComponent(this.traceId));
    if (!found || this.signal.aborted) return;
    this.revealed = new Revealed(this, found);
    this.showLower("judges");
    this.draw();
  }

  /** The lower pane shows the scores or, once revealed, what judges and others said. */
  showLower(name) {
    this.lower = this.revealed ? name : "scores";
    for (const each of ["scores", "judges"]) {
      this.part(each).hidden = each !== this.lower;
      this.part(each + "-tab").setAttribute("aria-pressed", String(each === this.lower));
    }
    this.part("judges-tab").hidden = !this.revealed;
  }

  showJudges() {
    if (!this.revealed) return say(this, this.state.review.status === "submitted" ? "Choose Reveal to see the judges' findings" : "Submit this trace first; then you can reveal the judges' findings");
    this.showLower("judges");
    this.focusPane("scores");
  }

  async drained(patience) {
    this.outbox.flush();
    for (const end = Date.now() + patience; Date.now() < end && !this.signal.aborted; ) {
      if (!this.outbox.pending) return true;
      if (this.outbox.parked.length) return false;
      await new Promise((done) => setTimeout(done, 25));
    }
    return this.outbox.pending === 0;
  }

  tell(kind) {
    this.component.setTriggerValue("act", { kind, trace_id: this.traceId });
  }

  // ---- the outbox --------------------------------------------------------------------------------------------

  outboxChanged() {
    if (this.signal.aborted) return;
    this.drawSaved();
    if (this.outbox.isWaitingForToken && !this.isAskingForPass) this.renew();
  }

  /** Another machine was faster: what is unsent here goes on top of what it stored. */
  meet(state) {
    const result = this.onTopOf(state);
    if (!this.signal.aborted) this.arrive(result.state, result.clashes);
  }

  onTopOf(state) {
    const result = rebasedAll(this.outbox.operations(), state, this.dimensionKeys);
    this.outbox.rewrite(result.operations);
    this.outbox.notes.push(...result.clashes.map((clash) => ({ clash })));
    return result;
  }

  /** The labels as they are now with the other machine's changes; the screen follows once no field is typed in. */
  arrive(state, clashes = []) {
    const isTold = ({ operation, field }) => field === "label" && clashes.some((clash) => clash.operation.payload.label_id === operation.payload.label_id);
    const changes = differences(this.later || this.state, state).filter((change) => !isTold(change));
    this.later = state;
    this.note(changes.map((change) => ({ change })));
    this.settle();
  }

  /** Whether somebody writes here, or reads a dialog: nothing on the screen is replaced. */
  get isInUse() {
    const field = document.activeElement;
    return this.isComposing || this.part("dialog").open || Boolean(this.cards?.typing || this.scores?.typing) || (this.root.contains(field) && isTyping(field));
  }

  settle() {
    if (!this.later || this.isInUse) return;
    const isNews = this.later.review.revealed && !this.state.review.revealed;
    this.state = this.later;
    this.later = null;
    if (!this.state.errors.some((error) => error.label_id === this.errorId)) this.errorId = this.state.errors[0]?.label_id || null;
    if (isNews && !this.revealed) this.loadRevealed();
    this.draw();
  }

  // ---- the note on another machine's changes: it takes no focus and asks nothing -----------------------------------

  note(entries) {
    this.outbox.notes.push(...entries);
    this.drawNote();
  }

  drawNote() {
    const host = this.part("note");
    const { notes } = this.outbox;
    host.hidden = !notes.length;
    if (!notes.length) return replaceIn(host);
    const close = el("button", { class: "tj-quiet", text: "Close", "aria-label": "Close the note", on: { click: () => this.dropNotes(() => true) } });
    const items = notes.slice(-20).map((entry) => this.noteItem(entry));
    return replaceIn(host, el("header", {}, el("b", { text: "Changed on another machine" }), close), el("ul", {}, ...items));
  }

  noteItem(entry) {
    const { clash, change } = entry;
    const place = this.placeName((clash || change).operation);
    if (change) return el("li", { text: differenceText(change, place) });
    const text = clashText(lastWord(clash, this.later || this.state), place);
    const take = takingTheirs(clash, this.state) && el("button", { class: "tj-quiet", text: "Take the other machine’s", on: { click: () => this.takeTheirs(entry) } });
    return el("li", {}, el("span", { text: text + " " }), take);
  }

  takeTheirs(entry) {
    this.settle();
    const operation = takingTheirs(entry.clash, this.state);
    if (operation && this.act(operation.kind, operation.payload)) this.dropNotes((other) => other === entry);
  }

  dropNotes(isDropped) {
    this.outbox.notes = this.outbox.notes.filter((entry) => !isDropped(entry));
    this.drawNote();
  }

  placeName({ kind, payload }) {
    if (kind === "score.put") return `Score ${payload.dimension}`;
    if (kind === "review.put") return "This trace";
    const at = (this.later || this.state).errors.findIndex((error) => error.label_id === payload.label_id);
    return at < 0 ? "An error" : `Error ${at + 1}`;
  }

  dropRefused() {
    for (const item of this.outbox.parked) this.outbox.forget(item);
    this.outbox.parked = [];
    this.outbox.problem = null;
    this.drawSaved();
    say(this, "Refused changes deleted. Reload the page to see the saved labels");
  }

  // ---- moving ------------------------------------------------------------------------------------------------

  select(seq, { from = null, isFirst = false, keepScroll = false, toHit = false } = {}) {
    const previous = this.current;
    this.current = Math.max(0, Math.min(this.spans.size - 1, seq));
    this.root.dataset.current = "S" + (this.current + 1);
    this.tree.reveal(this.current);
    if (!keepScroll) this.reader.dropSelection(this.current);
    if (!isFirst && !keepScroll) this.reader.show(this.current, previous);
    else {
      this.reader.blockNode(previous)?.classList.remove("tj-now");
      this.reader.blockNode(this.current)?.classList.add("tj-now");
      if (isFirst) this.reader.show(this.current, previous);
    }
    this.judgeText.scrollTo(this.current);
    if (toHit) this.reader.scrollToHit(this.current);
    remember(`tj:span:${this.user}:${this.traceId}`, this.spans.id[this.current]);
    clearTimeout(this.spanTimer);
    if (!isFirst || this.data.span) this.spanTimer = setTimeout(() => this.tellSpan(), 250);
    if (from === "tree") this.pane = "tree";
  }

  tellSpan() {
    const id = this.spans.id[this.current];
    if (this.toldSpan === id || this.signal.aborted) return;
    this.toldSpan = id;
    this.component.setStateValue("span", id);
  }

  selectId(id) {
    const seq = this.spans.seqOf.get(id);
    if (seq !== undefined) this.select(seq);
  }

  linkTo(seq) {
    const url = new URL(window.location.href);
    url.search = new URLSearchParams({ trace: this.traceId, span: this.spans.id[seq] }).toString();
    return url.toString();
  }

  nextPlan() {
    const plans = this.doc.plans;
    if (!plans.length) return say(this, "No plan was found in this trace");
    return this.select(plans.find((seq) => seq > this.current) ?? plans[0]);
  }

  /** The next span for which `test` holds, from the first again after the last. */
  nextWhere(test, none) {
    const { size } = this.spans;
    for (let step = 1; step <= size; step++) {
      const seq = (this.current + step) % size;
      if (test(seq)) return this.select(seq);
    }
    return say(this, none);
  }

  labelledSpans() {
    return new Set(this.marksBySpan().keys());
  }

  /** Impacts of the errors on each span (seq). */
  marksBySpan() {
    if (this.markedErrors === this.state.errors) return this.marks;
    const marks = new Map();
    this.markedErrors = this.state.errors;
    this.marks = marks;
    for (const error of this.state.errors) {
      for (const id of error.span_ids) {
        const seq = this.spans.seqOf.get(id);
        if (seq !== undefined) marks.set(seq, [...(marks.get(seq) || []), error.impact || "none"]);
      }
    }
    return marks;
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

  // ---- keys --------------------------------------------------------------------------------------------------

  listen() {
    const options = { signal: this.signal };
    document.addEventListener("keydown", (event) => this.key(event), { ...options, capture: true });
    for (const sign of ["pointerdown", "pointermove", "keydown", "wheel"]) document.addEventListener(sign, () => (this.lastSign = Date.now()), { ...options, passive: true });
    this.root.addEventListener("compositionstart", () => (this.isComposing = true), options);
    this.root.addEventListener("compositionend", () => this.composed(), options);
    window.addEventListener("online", () => this.outbox.nudge(), options);
    window.addEventListener("resize", () => this.fit(), options);
    window.addEventListener("beforeunload", (event) => this.leaving(event), options);
    document.addEventListener("visibilitychange", () => document.hidden && (this.flushTyping(), this.outbox.flush()), options);
    for (const name of TJ_PANES) this.part(name).closest(".tj-pane").addEventListener("focusin", () => this.paneEntered(name), options);
    this.reader.flow.addEventListener("mousedown", (event) => this.blockPressed(event), options);
    this.root.addEventListener("mousedown", (event) => event.target.closest("button.tj-toggle,button.tj-score") && event.preventDefault(), options);
    this.part("submit").onclick = () => this.submit();
    this.part("skip").onclick = () => askSkip(this);
    this.part("reopen").onclick = () => this.reopen();
    this.part("reveal").onclick = () => askReveal(this);
    this.part("judge-toggle").onclick = () => this.judgeText.toggle();
    for (const name of ["scores", "judges"]) this.part(name + "-tab").onclick = () => (this.showLower(name), this.focusPane("scores"));
    window.addEventListener("pagehide", () => (this.flushTyping(), this.keepHistory()), options);
    this.part("keys").onclick = () => showKeys(this);
    this.part("undo").onclick = () => this.undo();
    this.part("redo").onclick = () => this.redo();
    this.part("previous").onclick = () => this.tell("previous");
    this.part("next").onclick = () => this.tell("next");
    this.part("saved").onclick = () => (this.outbox.parked.length ? showRefused(this) : this.outbox.nudge());
    this.part("pretty").onclick = () => this.togglePretty();
    for (const button of this.part("panes").children) button.onclick = () => this.focusPane(button.dataset.pane);
    this.part("goal-toggle").onclick = () => this.toggleTop("goal");
    this.part("answer-toggle").onclick = () => this.toggleTop("answer");
    this.part("dialog").addEventListener("close", () => (this.focusPane(this.pane), this.settle()), options);
    this.root.addEventListener("focusin", (event) => this.focusEntered(event.target), options);
    this.root.addEventListener("focusout", (event) => this.focusLeft(event.relatedTarget), options);
    document.addEventListener("focusin", (event) => this.refuseConnectionDialog(event.target.closest?.('[role="dialog"]')), { ...options, capture: true });
  }

  /** While one works here the desk counts as above Streamlit's dialogs: none makes it inert or takes its keys. */
  focusEntered(target) {
    this.lastFocus = target;
    this.drawHints();
    this.root.setAttribute("data-react-aria-top-layer", "true");
  }

  focusLeft(to) {
    setTimeout(() => this.settle());
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
    this.drawHints();
    for (const pane of TJ_PANES) this.part(pane).closest(".tj-pane").classList.toggle("tj-focused", pane === name);
    for (const button of this.part("panes").children) button.setAttribute("aria-pressed", String(button.dataset.pane === name));
  }

  blockPressed(event) {
    const block = event.target.closest("[data-block]");
    if (block && !event.target.closest("button")) this.select(+block.dataset.block, { keepScroll: true });
  }

  /** The keys that act where the focus is: in a field, else in the pane in hand. */
  drawHints() {
    const reads = ([id]) => !this.isLocked || TJ_KEYS.find((entry) => entry.id === id)?.group === "Read";
    const field = isTyping(document.activeElement) ? (document.activeElement === this.part("search") ? "search" : "field") : null;
    const hints = field ? TJ_HINTS[field] : [["help", "all keys"], ...TJ_HINTS[this.pane].filter(reads)];
    replaceIn(this.part("hints"), ...hints.map(([id, words]) => el("span", {}, el("kbd", { text: keyHint(id, this.keyOverrides) || id }), words && " " + words)));
  }

  /** Hints and titles name the keys as the person has set them. */
  drawKeys() {
    this.drawHints();
    for (const [part, action] of Object.entries(TJ_BUTTON_KEYS)) {
      const button = this.part(part);
      button.title = `${button.title.replace(/ \([^()]*\)$/, "")} (${keyHint(action, this.keyOverrides)})`;
    }
    this.part("search").placeholder = `Search spans  ${keyHint("search", this.keyOverrides)}`;
  }

  leaving(event) {
    this.flushTyping();
    if (this.outbox.pending && !this.outbox.isKeptLocally) event.preventDefault();
  }

  key(event) {
    const target = event.target;
    if (isDialogOpen()) return;
    const isOurs = target === document.body || this.root.contains(target);
    if (!isOurs) return;
    const key = pressedKey(event);
    if (key === "Ctrl+Enter") return this.take(event, () => this.submit());
    if (isTyping(target)) {
      if (target === this.part("search")) return; // it has its own Enter and Esc
      if (key === "Escape") return this.take(event, () => this.leaveField(target));
      return;
    }
    if (key === null) return;
    if (key === "Tab") return this.tab(event);
    if (target.closest('[role="separator"]')) return;
    if (this.isBusy) return this.take(event, () => {});
    if ((key === "Enter" || key === "Space") && target.closest("button,a,summary,input,[data-seq]")) return;
    const isAside = target !== document.body && !target.closest(".tj-pane"); // a button of the head: no pane has the focus
    if (isAside && /^[0-9]$/.test(key)) return;
    if (!isAside && this.pane === "scores" && this.lower === "scores" && this.scoreKey(event, key)) return;
    if (!isAside && this.pane === "tree" && this.treeKey(event, key)) return;
    const action = this.table.get(key);
    if (action === undefined) return;
    if ((key.startsWith("Arrow") || key === "Backspace") && target.matches?.("input,select")) return;
    this.take(event, () => this.run(action));
  }

  take(event, act) {
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  /** From a pane (not from a control in it) Tab goes to the next pane; at the ends it leaves as usual. */
  tab(event) {
    const isPane = event.target === document.body || TJ_PANES.some((name) => this.paneHost(name) === event.target);
    if (isPane && this.stepPane(event.shiftKey ? -1 : 1)) this.take(event, () => {});
  }

  leaveField(field) {
    const pane = TJ_PANES.find((name) => this.part(name).closest(".tj-pane").contains(field)) || "text"; // before it is drawn anew
    field.blur();
    this.flushTyping();
    this.focusPane(pane);
  }

  scoreKey(event, key) {
    const acts = {
      N: () => this.scores.answer(() => this.scores.toggleNotApplicable()),
      ArrowDown: () => this.scores.move(1),
      ArrowUp: () => this.scores.move(-1),
      Backspace: () => this.scores.change({ value: null, not_applicable: false }),
    };
    if (/^[0-3]$/.test(key)) acts[key] = () => this.scores.answer(() => this.scores.set(+key));
    if (/^[4-9]$/.test(key)) return true;
    if (!acts[key]) return false;
    this.take(event, acts[key]);
    return true;
  }

  treeKey(event, key) {
    const { current, tree, spans } = this;
    if (key === "ArrowRight") {
      this.take(event, () => (spans.hasChildren(current) && tree.folded.has(current) ? tree.toggle(current) : spans.hasChildren(current) ? this.select(current + 1, { from: "tree" }) : null));
    } else if (key === "ArrowLeft") {
      this.take(event, () => (spans.hasChildren(current) && !tree.folded.has(current) ? tree.toggle(current) : spans.parent[current] >= 0 ? this.select(spans.parent[current], { from: "tree" }) : null));
    } else if (key === "Home" || key === "End") {
      this.take(event, () => this.select(key === "Home" ? tree.rows[0] : tree.rows[tree.rows.length - 1], { from: "tree" }));
    } else return false;
    return true;
  }

  run(action) {
    const { cards, reader, tree } = this;
    const acts = {
      next: () => this.select(tree.neighbour(1)),
      previous: () => this.select(tree.neighbour(-1)),
      nextPeer: () => this.select(peerOf(this.spans, this.current, 1)),
      previousPeer: () => this.select(peerOf(this.spans, this.current, -1)),
      fold: () => tree.toggle(this.current),
      foldAll: () => tree.toggleAll(),
      search: () => this.part("search").select(),
      nextHit: () => tree.nextHit(),
      goal: () => this.toggleTop("goal"),
      plan: () => this.nextPlan(),
      nextFailure: () => this.nextWhere((seq) => this.spans.status[seq] === 2, "No span failed"),
      nextTool: () => this.nextWhere((seq) => TJ_KINDS[this.spans.kind[seq]] === "TOOL", "This trace has no tool call"),
      nextLabel: () => this.nextWhere((seq) => this.marksBySpan().has(seq), "You have labelled no span"),
      outline: () => tree.toggleOutline(),
      answer: () => this.toggleTop("answer"),
      pretty: () => this.togglePretty(),
      judgeText: () => this.judgeText.toggle(),
      judges: () => this.showJudges(),
      showAll: () => reader.openAll(this.current),
      copyId: () => copyText(this, this.spans.id[this.current], "Span id"),
      link: () => copyText(this, this.linkTo(this.current), "Link"),
      newError: () => cards.add(),
      low: () => cards.setImpact("low"),
      medium: () => cards.setImpact("medium"),
      high: () => cards.setImpact("high"),
      evidence: () => cards.addEvidence(),
      growEnd: () => reader.sentence(true, true),
      growStart: () => reader.sentence(false, true),
      shrinkEnd: () => reader.sentence(true, false),
      shrinkStart: () => reader.sentence(false, false),
      describe: () => (this.pane === "scores" ? this.scores.describe() : cards.describe()),
      category: () => cards.chooseCategory(),
      addSpan: () => cards.addSpan(),
      removeSpan: () => cards.removeSpan(),
      nextError: () => cards.next(),
      deleteError: () => cards.delete(),
      noError: () => cards.toggleNoError(),
      undo: () => this.undo(),
      redo: () => this.redo(),
      scores: () => (this.showLower("scores"), this.focusPane("scores")),
      lessSure: () => this.scores.stepConfidence(-1),
      moreSure: () => this.scores.stepConfidence(1),
      panes: () => this.stepPane(1) || this.focusPane(TJ_PANES[0]),
      previousItem: () => this.tell("previous"),
      nextItem: () => this.tell("next"),
      skip: () => !this.isLocked && askSkip(this),
      help: () => showKeys(this),
      guideline: () => showGuideline(this),
    };
    if (action.startsWith("dimension")) {
      const dimension = this.dimensionKeys[+action.slice(9) - 1];
      if (dimension) cards.toggleDimension(dimension);
    } else acts[action]?.();
  }

  setKeys(overrides) {
    this.settings.set({ keys: overrides });
  }

  togglePretty() {
    this.settings.set({ pretty: !this.isPretty });
  }

  takeSettings() {
    this.keyOverrides = this.settings.values.keys;
    this.isPretty = this.settings.values.pretty;
    this.table = keyTable(this.keyOverrides);
  }

  settingsChanged() {
    const wasPretty = this.isPretty;
    this.takeSettings();
    if (this.reader) this.drawKeys();
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
    this.reader.scrollTo(this.reader.blockNode(this.current));
  }

  toggleTop(name) {
    const strip = this.part(name);
    strip.classList.toggle("tj-open");
    this.part(name + "-toggle").setAttribute("aria-expanded", String(strip.classList.contains("tj-open")));
  }

  // ---- drawing -----------------------------------------------------------------------------------------------

  draw() {
    if (!this.reader) return;
    this.isDrawLate = this.isComposing;
    if (this.isComposing) return; // a field that is drawn anew would lose what an input method is composing
    this.flushTyping(); // and what is being typed
    this.cards.draw();
    this.scores.draw();
    this.tree.only.has("labelled") ? this.tree.refresh() : this.tree.schedule();
    this.tree.drawMarks();
    this.reader.scheduleMarks();
    this.drawHead();
    this.drawSaved();
    this.drawMissing();
  }

  drawHead() {
    const { review } = this.state;
    const { queue } = this.data;
    this.part("title").textContent = this.traceId;
    this.part("title").title = `${this.doc.format} trace ${this.traceId}`;
    this.root.classList.toggle("tj-is-locked", this.isLocked);
    const isDone = review.status !== "open";
    const isRevealed = this.phase === "revealed";
    this.part("status").textContent = this.data.read_only ? "read only" : isRevealed ? "revealed" : review.status === "submitted" ? "submitted" : review.status === "skipped" ? "skipped" : this.blindText();
    this.part("status").dataset.status = this.data.read_only ? "read" : review.status === "open" || isRevealed ? (this.state.seen?.length ? "revealed" : this.phase) : review.status;
    this.part("status").title = (review.status === "open" && this.blindTitle()) || meaningOf(this.part("status").textContent) || "";
    this.part("submit").hidden = this.data.read_only || (isDone && !isRevealed) || (isRevealed && Boolean(queue) && !queue.has_next);
    this.part("reveal").hidden = this.data.read_only || review.status !== "submitted" || isRevealed || this.isBusy;
    this.part("skip").hidden = this.data.read_only || isDone;
    this.part("reopen").hidden = this.data.read_only || !isDone || this.phase === "revealed" || this.isBusy;
    this.part("submit").disabled = this.isBusy;
    this.part("submit").textContent = this.isBusy ? "Saving…" : isRevealed ? "Next" : "Submit";
    this.part("submit").title = `${isRevealed ? "Next trace" : "Check, save and submit"} (${keyHint("submit")})`;
    this.part("previous").disabled = queue ? !queue.has_previous : false;
    this.part("next").disabled = queue ? !queue.has_next : false;
    this.part("undo").disabled = this.isLocked || !this.history.past.length;
    this.part("redo").disabled = this.isLocked || !this.history.future.length;
    this.part("pretty").setAttribute("aria-pressed", String(!this.isPretty));
    this.drawQueue(queue);
  }

  /** "blind", or what was seen first of judges and others, and when. */
  blindText() {
    const [first] = this.state.seen || [];
    return first ? `not blind: ${first.what} opened ${clockText(first.at)}` : this.phase;
  }

  blindTitle() {
    const seen = this.state.seen || [];
    if (!seen.length) return "You have not seen what judges or others say of this trace";
    return `Your labels of this trace are stored as not blind. You saw: ${seen.map(({ what, at }) => `${what} (${new Date(at / 1000).toLocaleString()})`).join(", ")}`;
  }

  drawQueue(queue) {
    const host = this.part("queue");
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
    const { outbox } = this;
    const typing = (this.cards?.typing ? 1 : 0) + (this.scores?.typing ? 1 : 0);
    const unsaved = outbox.pending + typing;
    const button = this.part("saved");
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
    for (const [name, number] of [["goal", this.doc.goal], ["answer", this.doc.answer]]) {
      const text = number === null ? null : this.textOf(number);
      this.part(name).classList.toggle("tj-absent", text === null);
      const host = this.part(name + "-text");
      if (text) showText(host, text.loaded, {});
      else host.textContent = name === "goal" ? "The trace records no goal" : "The trace records no final answer";
    }
    const times = this.spans.duration.map((each, seq) => (this.spans.start[seq] || 0) + (each || 0));
    const whole = times.reduce((most, each) => Math.max(most, each), 0);
    const facts = [`${countText(this.spans.size)} span${this.spans.size === 1 ? "" : "s"}`, durationText(whole), this.doc.format, this.doc.clock === "sim" ? "simulated clock" : ""].filter(Boolean);
    this.part("facts").textContent = facts.join(" · ");
    const { warnings } = this.doc;
    const host = this.part("warnings");
    host.hidden = !warnings.length;
    host.textContent = `${warnings.length} warning${warnings.length > 1 ? "s" : ""}`;
    host.title = warnings.join("\n");
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

  // ---- time --------------------------------------------------------------------------------------------------

  startTimer() {
    this.activeMs = Math.max(recall(this.timeKey(), 0), this.state.review.active_ms || 0);
    this.lastSign = this.countedTo = Date.now();
    const timer = setInterval(() => {
      this.countTime();
      remember(this.timeKey(), Math.round(this.activeMs));
      const seconds = Math.floor(this.activeMs / 1000);
      this.part("timer").textContent = String(Math.floor(seconds / 60)).padStart(2, "0") + ":" + String(seconds % 60).padStart(2, "0");
    }, 1000);
    this.signal.addEventListener("abort", () => clearInterval(timer));
  }

  timeKey() {
    return `tj:time:${this.user}:${this.traceId}`;
  }

  /** Add what passed since the last count: at each tick, and at an act, whose last part of a second counts too. */
  countTime() {
    const now = Date.now();
    const isActive = !document.hidden && now - this.lastSign < TJ_IDLE && !this.isLocked && this.phase === "blind";
    if (isActive) this.activeMs += Math.min(now - this.countedTo, 2000);
    this.countedTo = now;
  }

  /** The script ran again: a fresh pass or queue; the person's work is not touched. */
  update(component) {
    const isFresh = component.data.token !== this.data.token;
    this.component = component;
    this.data = component.data;
    if (isFresh) {
      this.renewLater();
      this.passArrived(true);
    }
    this.takeNewer(completeState(this.data.state));
    this.state = { ...this.state, seen: completeState(this.data.state).seen };
    if (isFresh && this.outbox.isWaitingForToken) this.outbox.renewed();
    if (!this.reader) return;
    this.fit();
    this.draw();
  }

  /** Another machine or tab has gone on with this work and nothing is unsent here: what is stored is shown. */
  takeNewer(state) {
    if (!this.reader || this.outbox.pending || this.outbox.isSending || state.revision <= this.outbox.revision) return;
    this.arrive(this.outbox.learn(state));
  }

  close() {
    if (this.signal.aborted) return;
    this.keepHistory();
    if (this.reader) {
      this.flushTyping();
      this.reader.close();
    }
    this.abort.abort();
    clearTimeout(this.spanTimer);
    clearTimeout(this.passTimer);
  }
}

function percent(done, total) {
  return `${total ? Math.floor((100 * done) / total) : 100} %`;
}

/** How long the rest of the queue takes; no count of places, which would tell how many are hidden repeats. */
function leftText(milliseconds) {
  const minutes = Math.max(1, Math.round(milliseconds / 60000));
  const text = minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
  return el("span", { class: "tj-due", title: "At the median of your active time on the traces of this queue", text: `about ${text} left` });
}

/** When the queue is wanted; said more loudly once that is past. */
function dueText(due) {
  const isOver = Date.now() > due;
  const day = new Date(due).toLocaleDateString([], { day: "numeric", month: "short" });
  return el("span", { class: isOver ? "tj-due tj-due-over" : "tj-due", title: new Date(due).toLocaleString(), text: isOver ? `was due ${day}` : `due ${day}` });
}

/** Whether any dialog of the page is open, ours or Streamlit's: then no key is a command. */
function isDialogOpen() {
  return document.querySelector('dialog[open], [role="dialog"], [role="alertdialog"]:not([aria-modal="false"]), [aria-modal="true"]') !== null;
}

function clockText(at) {
  return new Date(at / 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
}

function reviewForm({ status, no_error, reason, active_ms }) {
  return { status, no_error, reason, active_ms: active_ms ?? null };
}

function isDark(color) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = color || "#ffffff";
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 128;
}

function recall(key, otherwise, storage = window.localStorage) {
  try {
    const text = storage.getItem(key);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

function remember(key, value, storage = window.localStorage) {
  try {
    storage.setItem(key, JSON.stringify(value));
  } catch {
    return; // a preference, not a label: it may be lost
  }
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
