// The keys: which act a press is, and the hints on the keys that act where the focus is.

import { askSkip, showGuideline, showKeys } from "./dialogs.mjs";
import { isTyping, keyHint, keyTable, pressedKey, TJ_HINTS, TJ_KEYS } from "./keys.mjs";
import { copyText, el, replaceIn } from "./page.mjs";
import { TJ_PANES } from "./panes.mjs";
import { peerOf, TJ_KINDS } from "./spans.mjs";

const TJ_BUTTON_KEYS = { previous: "previousItem", next: "nextItem", undo: "undo", redo: "redo", keys: "help", skip: "skip", pretty: "pretty", "judge-toggle": "judgeText", "goal-toggle": "goal", "answer-toggle": "answer", "judges-tab": "judges", comments: "comment", submit: "submit" };

export class Keyboard {
  constructor(desk) {
    this.desk = desk;
  }

  takeSettings() {
    this.keyOverrides = this.desk.settings.values.keys;
    this.table = keyTable(this.keyOverrides);
  }

  /** The keys that act where the focus is: in a field, else in the pane in hand. */
  drawHints() {
    const reads = ([id]) => !this.desk.work.isLocked || TJ_KEYS.find((entry) => entry.id === id)?.group === "Read";
    const field = isTyping(document.activeElement) ? (document.activeElement === this.desk.part("search") ? "search" : "field") : null;
    const hints = this.desk.part("dialog").open ? TJ_HINTS.dialog : field ? TJ_HINTS[field] : [["help", "all keys"], ...TJ_HINTS[this.desk.pane].filter(reads)];
    replaceIn(this.desk.part("hints"), ...hints.map(([id, words]) => el("span", {}, el("kbd", { text: keyHint(id, this.keyOverrides) || id }), words && " " + words)));
  }

  /** Hints and titles name the keys as the person has set them. */
  drawKeys() {
    this.drawHints();
    for (const [part, action] of Object.entries(TJ_BUTTON_KEYS)) {
      const button = this.desk.part(part);
      button.title = `${button.title.replace(/ \([^()]*\)$/, "")} (${keyHint(action, this.keyOverrides)})`;
    }
    this.desk.part("search").placeholder = `Search spans  ${keyHint("search", this.keyOverrides)}`;
  }

  key(event) {
    const target = event.target;
    if (isDialogOpen()) return;
    const isOurs = target === document.body || this.desk.root.contains(target);
    if (!isOurs) return;
    const key = pressedKey(event);
    if (key === "Ctrl+Enter") return this.take(event, () => this.desk.submission.submit());
    if (isTyping(target)) {
      if (target === this.desk.part("search")) return; // it has its own Enter and Esc
      if (key === "Escape") return this.take(event, () => this.leaveField(target));
      return;
    }
    if (key === null) return;
    if (key === "Tab") return this.tab(event);
    if (target.closest('[role="separator"]')) return;
    if (target.closest("audio,video") && /^(Space|Enter|Arrow|Home|End)/.test(key)) return; // the player's own keys
    if (this.desk.submission.isBusy) return this.take(event, () => {});
    if ((key === "Enter" || key === "Space") && target.closest("button,a,summary,input,[data-seq]")) return;
    const isAside = target !== document.body && !target.closest(".tj-pane"); // a button of the head: no pane has the focus
    if (isAside && /^[0-9]$/.test(key)) return;
    if (!isAside && this.desk.pane === "scores" && this.desk.lower === "scores" && this.scoreKey(event, key)) return;
    if (!isAside && this.desk.pane === "tree" && this.treeKey(event, key)) return;
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
    const isPane = event.target === document.body || TJ_PANES.some((name) => this.desk.paneHost(name) === event.target);
    if (isPane && this.desk.stepPane(event.shiftKey ? -1 : 1)) this.take(event, () => {});
  }

  leaveField(field) {
    const pane = TJ_PANES.find((name) => this.desk.part(name).closest(".tj-pane").contains(field)) || "text"; // before it is drawn anew
    field.blur();
    this.desk.work.flushTyping();
    this.desk.focusPane(pane);
  }

  scoreKey(event, key) {
    const acts = {
      N: () => this.desk.scores.answer(() => this.desk.scores.toggleNotApplicable()),
      ArrowDown: () => this.desk.scores.move(1),
      ArrowUp: () => this.desk.scores.move(-1),
      Backspace: () => this.desk.scores.change({ value: null, not_applicable: false }),
    };
    if (/^[0-3]$/.test(key)) acts[key] = () => this.desk.scores.answer(() => this.desk.scores.set(+key));
    if (/^[4-9]$/.test(key)) return true;
    if (!acts[key]) return false;
    this.take(event, acts[key]);
    return true;
  }

  treeKey(event, key) {
    const { tree } = this.desk;
    const { current } = this.desk.place;
    const { spans } = this.desk.trace;
    if (key === "ArrowRight") {
      this.take(event, () => (spans.hasChildren(current) && tree.folded.has(current) ? tree.toggle(current) : spans.hasChildren(current) ? this.desk.place.select(current + 1, { from: "tree" }) : null));
    } else if (key === "ArrowLeft") {
      this.take(event, () => (spans.hasChildren(current) && !tree.folded.has(current) ? tree.toggle(current) : spans.parent[current] >= 0 ? this.desk.place.select(spans.parent[current], { from: "tree" }) : null));
    } else if (key === "Home" || key === "End") {
      this.take(event, () => this.desk.place.select(key === "Home" ? tree.rows[0] : tree.rows[tree.rows.length - 1], { from: "tree" }));
    } else return false;
    return true;
  }

  run(action) {
    const { cards, reader, tree } = this.desk;
    const acts = {
      next: () => this.desk.place.select(tree.neighbour(1)),
      previous: () => this.desk.place.select(tree.neighbour(-1)),
      nextPeer: () => this.desk.place.select(peerOf(this.desk.trace.spans, this.desk.place.current, 1)),
      previousPeer: () => this.desk.place.select(peerOf(this.desk.trace.spans, this.desk.place.current, -1)),
      fold: () => tree.toggle(this.desk.place.current),
      foldAll: () => tree.toggleAll(),
      search: () => this.desk.part("search").select(),
      nextHit: () => tree.nextHit(),
      goal: () => this.desk.head.toggleTop("goal"),
      plan: () => this.desk.place.nextPlan(),
      nextFailure: () => this.desk.place.nextWhere((seq) => this.desk.trace.spans.status[seq] === 2, "No span failed"),
      nextTool: () => this.desk.place.nextWhere((seq) => TJ_KINDS[this.desk.trace.spans.kind[seq]] === "TOOL", "This trace has no tool call"),
      nextLabel: () => this.desk.place.nextWhere((seq) => this.desk.place.marksBySpan().has(seq), "You have labelled no span"),
      outline: () => tree.toggleOutline(),
      answer: () => this.desk.head.toggleTop("answer"),
      pretty: () => this.desk.togglePretty(),
      judgeText: () => this.desk.judgeText.toggle(),
      judges: () => this.desk.showJudges(),
      showAll: () => reader.openAll(this.desk.place.current),
      copyId: () => copyText(this.desk, this.desk.trace.spans.id[this.desk.place.current], "Span id"),
      link: () => copyText(this.desk, this.desk.place.linkTo(this.desk.place.current), "Link"),
      newError: () => cards.add(),
      low: () => cards.setImpact("low"),
      medium: () => cards.setImpact("medium"),
      high: () => cards.setImpact("high"),
      evidence: () => cards.addEvidence(),
      growEnd: () => reader.sentence(true, true),
      growStart: () => reader.sentence(false, true),
      shrinkEnd: () => reader.sentence(true, false),
      shrinkStart: () => reader.sentence(false, false),
      describe: () => (this.desk.pane === "scores" ? this.desk.scores.describe() : cards.describe()),
      category: () => cards.chooseCategory(),
      addSpan: () => cards.addSpan(),
      removeSpan: () => cards.removeSpan(),
      nextError: () => cards.next(),
      deleteError: () => cards.delete(),
      comment: () => this.desk.comments.open(),
      noError: () => cards.toggleNoError(),
      undo: () => this.desk.work.undo(),
      redo: () => this.desk.work.redo(),
      scores: () => (this.desk.showLower("scores"), this.desk.focusPane("scores")),
      lessSure: () => this.desk.scores.stepConfidence(-1),
      moreSure: () => this.desk.scores.stepConfidence(1),
      panes: () => this.desk.stepPane(1) || this.desk.focusPane(TJ_PANES[0]),
      previousItem: () => this.desk.tell("previous"),
      nextItem: () => this.desk.tell("next"),
      skip: () => !this.desk.work.isLocked && askSkip(this.desk),
      help: () => showKeys(this.desk),
      guideline: () => showGuideline(this.desk),
    };
    if (action.startsWith("dimension")) {
      const dimension = this.desk.dimensionKeys[+action.slice(9) - 1];
      if (dimension) cards.toggleDimension(dimension);
    } else acts[action]?.();
  }

  setKeys(overrides) {
    this.desk.settings.set({ keys: overrides });
  }
}

/** Whether any dialog of the page is open, ours or Streamlit's: then no key is a command. */
function isDialogOpen() {
  return document.querySelector('dialog[open], [role="dialog"], [role="alertdialog"]:not([aria-modal="false"]), [aria-modal="true"]') !== null;
}
