// The key table: which key does what, remapping, and refusing conflicts.

export const TJ_KEYS = [
  { id: "next", keys: ["J", "ArrowDown"], title: "Next span", group: "Read" },
  { id: "previous", keys: ["K", "ArrowUp"], title: "Previous span", group: "Read" },
  { id: "nextPeer", keys: ["Shift+J"], title: "Next span of the same kind", group: "Read" },
  { id: "previousPeer", keys: ["Shift+K"], title: "Previous span of the same kind", group: "Read" },
  { id: "fold", keys: ["O"], title: "Fold or unfold", group: "Read" },
  { id: "foldAll", keys: ["Shift+O"], title: "Fold or unfold all", group: "Read" },
  { id: "search", keys: ["/"], title: "Search spans", group: "Read" },
  { id: "nextHit", keys: ["N"], title: "Next hit", group: "Read" },
  { id: "goal", keys: ["G"], title: "Goal", group: "Read" },
  { id: "plan", keys: ["P"], title: "Next plan", group: "Read" },
  { id: "nextFailure", keys: ["Shift+F"], title: "Next failed span", group: "Read" },
  { id: "nextTool", keys: ["Shift+X"], title: "Next tool call", group: "Read" },
  { id: "nextLabel", keys: ["Shift+L"], title: "Next span that you labelled", group: "Read" },
  { id: "outline", keys: ["Shift+B"], title: "Outline: agents, plans, failures, your labels, last answer", group: "Read" },
  { id: "answer", keys: ["F"], title: "Final answer", group: "Read" },
  { id: "pretty", keys: ["V"], title: "Raw or rendered text", group: "Read" },
  { id: "judgeText", keys: ["Shift+V"], title: "Judge's view or conversation", group: "Read" },
  { id: "showAll", keys: ["Q"], title: "Show all text of this span", group: "Read" },
  { id: "copyId", keys: ["Y"], title: "Copy the span's id", group: "Read" },
  { id: "link", keys: ["X"], title: "Copy a link to the span", group: "Read" },
  { id: "newError", keys: ["A"], title: "New error here, selection as evidence", group: "Label" },
  { id: "dimension1", keys: ["1"], title: "Dimension 1", group: "Label", fixed: true },
  { id: "dimension2", keys: ["2"], title: "Dimension 2", group: "Label", fixed: true },
  { id: "dimension3", keys: ["3"], title: "Dimension 3", group: "Label", fixed: true },
  { id: "dimension4", keys: ["4"], title: "Dimension 4", group: "Label", fixed: true },
  { id: "dimension5", keys: ["5"], title: "Dimension 5", group: "Label", fixed: true },
  { id: "dimension6", keys: ["6"], title: "Dimension 6", group: "Label", fixed: true },
  { id: "dimension7", keys: ["7"], title: "Dimension 7", group: "Label", fixed: true },
  { id: "low", keys: ["L"], title: "Impact low", group: "Label" },
  { id: "medium", keys: ["M"], title: "Impact medium", group: "Label" },
  { id: "high", keys: ["H"], title: "Impact high", group: "Label" },
  { id: "evidence", keys: ["E"], title: "Add the selection as evidence", group: "Label" },
  { id: "growEnd", keys: ["]"], title: "Extend selection by a sentence at the end", group: "Label" },
  { id: "growStart", keys: ["["], title: "Extend selection by a sentence at the start", group: "Label" },
  { id: "shrinkEnd", keys: ["}"], title: "Shrink selection by a sentence at the end", group: "Label" },
  { id: "shrinkStart", keys: ["{"], title: "Shrink selection by a sentence at the start", group: "Label" },
  { id: "describe", keys: ["D"], title: "Description or note (Esc leaves)", group: "Label" },
  { id: "category", keys: ["Shift+T"], title: "TRAIL category: type to find, 1 to 9 pick", group: "Label" },
  { id: "addSpan", keys: ["+"], title: "Add this span to the error", group: "Label" },
  { id: "removeSpan", keys: ["-"], title: "Remove this span from the error", group: "Label" },
  { id: "nextError", keys: ["T"], title: "Next error", group: "Label" },
  { id: "deleteError", keys: ["Backspace"], title: "Delete the error", group: "Label" },
  { id: "comment", keys: ["Shift+D"], title: "Comments on this span or error", group: "Label" },
  { id: "noError", keys: ["Z"], title: "No error in this trace", group: "Label" },
  { id: "undo", keys: ["U"], title: "Undo", group: "Label" },
  { id: "redo", keys: ["Shift+U"], title: "Redo", group: "Label" },
  { id: "scores", keys: ["W"], title: "Scores: 0 to 3, N for n/a, ↓ ↑", group: "Finish" },
  { id: "judges", keys: ["I"], title: "Judges' findings (after reveal)", group: "Finish" },
  { id: "lessSure", keys: [","], title: "Scores: less confident", group: "Finish" },
  { id: "moreSure", keys: ["."], title: "Scores: more confident", group: "Finish" },
  { id: "panes", keys: ["F6"], title: "Next pane (so does Tab)", group: "Finish" },
  { id: "previousItem", keys: ["ArrowLeft"], title: "Previous trace", group: "Finish" },
  { id: "nextItem", keys: ["ArrowRight"], title: "Next trace", group: "Finish" },
  { id: "skip", keys: ["S"], title: "Skip, with a reason", group: "Finish" },
  { id: "submit", keys: ["Ctrl+Enter"], title: "Check, save and submit", group: "Finish", fixed: true },
  { id: "help", keys: ["?"], title: "Keyboard shortcuts", group: "Finish" },
  { id: "guideline", keys: ["Shift+G"], title: "Guideline of the dimension", group: "Finish" },
];
// Streamlit owns R and C outside the island; digits belong to dimensions and scores; Tab and Esc to the browser.
const TJ_RESERVED = new Set(["R", "C", "Tab", "Escape", "Enter", "Space", "Ctrl+Enter", ..."0123456789"]);

/** What acts in each pane, in a few words, for the line of hints: an act's id or the keys themselves. */
export const TJ_HINTS = {
  tree: [["next", "next span"], ["previous", "previous"], ["fold", "fold"], ["search", "search"], ["nextHit", "next hit"], ["outline", "outline"], ["plan", "next plan"], ["nextFailure", "next failure"], ["nextTool", "next tool call"], ["nextLabel", "next label"], ["newError", "new error"]],
  text: [["growEnd", "select a sentence"], ["newError", "new error from it"], ["evidence", "add as evidence"], ["next", "next span"], ["pretty", "raw text"], ["showAll", "whole text"], ["search", "search"], ["comment", "comment"], ["scores", "scores"]],
  errors: [["dimension1", "to 7: dimension"], ["low", ""], ["medium", ""], ["high", "impact"], ["growEnd", "select a sentence"], ["evidence", "add as evidence"], ["describe", "describe"], ["category", "category"], ["addSpan", "add span"], ["nextError", "next error"], ["deleteError", "delete"], ["comment", "comment"], ["scores", "scores"]],
  scores: [["0 to 3", "score, then the next dimension"], ["N", "not applicable"], ["↑ ↓", "dimension"], ["lessSure", ""], ["moreSure", "confidence"], ["describe", "note"], ["⌫", "delete score"], ["submit", "submit"]],
  search: [["↵", "first hit"], ["Esc", "show all spans"]],
  dialog: [["Esc", "close"]],
  field: [["Esc", "leave the field"], ["submit", "submit"]],
};

/** A key press as the table writes it (`Shift+J`, `/`, `Ctrl+Enter`), or null for a press that is no shortcut. */
export function pressedKey(event) {
  const code = event.code || "";
  let key = event.key;
  if (event.isComposing || key === undefined || key === "Dead" || key === "Process") return null;
  if (event.ctrlKey || event.metaKey) return key === "Enter" ? "Ctrl+Enter" : null;
  if (event.altKey && !/^[[\]{}+\-/?]$/.test(key)) return null; // AltGr writes brackets on many keyboards
  if (/^[a-z]$/i.test(key)) return (event.shiftKey ? "Shift+" : "") + key.toUpperCase();
  if (key.length === 1 && key.charCodeAt(0) > 0x7e && /^Key[A-Z]$/.test(code)) {
    return (event.shiftKey ? "Shift+" : "") + code[3]; // another script's keyboard: the key's place decides
  }
  if (/^(Digit|Numpad)[0-9]$/.test(code) && (!event.shiftKey || /^[0-9]$/.test(key))) {
    if (!/^[[\]{}+\-/?,.]$/.test(key)) return code.slice(-1);
  }
  return key === " " ? "Space" : key;
}

/** Key -> action id, with a user's `overrides` ({action: key}); an override that conflicts is left out. */
export function keyTable(overrides = {}) {
  const table = new Map();
  for (const entry of TJ_KEYS) if (!(entry.id in overrides)) for (const key of entry.keys) table.set(key, entry.id);
  for (const entry of TJ_KEYS) {
    const key = overrides[entry.id];
    if (key === undefined) continue;
    if (entry.fixed || table.has(key) || TJ_RESERVED.has(key)) for (const own of entry.keys) table.set(own, entry.id);
    else table.set(key, entry.id);
  }
  return table;
}

/** Why `key` cannot be given to `action` (a sentence), or null when it can. */
export function keyConflict(action, key, overrides = {}) {
  const entry = TJ_KEYS.find((known) => known.id === action);
  if (!entry || entry.fixed) return "This shortcut cannot be changed.";
  if (TJ_RESERVED.has(key)) return `${key} is reserved.`;
  const others = { ...overrides };
  delete others[action];
  const owner = keyTable(others).get(key);
  if (owner === undefined || owner === action) return null;
  return `${key} is used by “${TJ_KEYS.find((known) => known.id === owner).title}”.`;
}

export function keysOf(action, overrides = {}) {
  return [...keyTable(overrides)].filter(([, id]) => id === action).map(([key]) => key);
}

/** The keys of an act as they are shown. */
export function keyHint(action, overrides = {}) {
  return keysOf(action, overrides).map(keyLabel).join(" ");
}

export function keyLabel(key) {
  const names = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Backspace: "⌫", "Ctrl+Enter": "Ctrl ↵", "-": "−" };
  return names[key] || key.replace("Shift+", "⇧");
}

/** Whether typing in `node` writes text: then no single key acts. */
export function isTyping(node) {
  if (!node || !node.closest) return false;
  if (node.isContentEditable || node.closest('[contenteditable="true"],[role="textbox"],[role="combobox"]')) return true;
  const field = node.closest("input,textarea,select");
  if (!field) return false;
  return !["checkbox", "radio", "button", "submit"].includes((field.type || "").toLowerCase());
}
