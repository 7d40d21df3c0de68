// The dialogs: cheat sheet with remapping, skip with a reason, the guideline. None opens by itself.

import { el, replaceIn } from "./page.mjs";
import { keyConflict, keyLabel, keysOf, pressedKey, TJ_KEYS } from "./keys.mjs";

export function openDialog(desk, label, ...children) {
  const dialog = desk.part("dialog");
  replaceIn(dialog, ...children);
  dialog.setAttribute("aria-label", label);
  if (!dialog.open) dialog.showModal();
  return dialog;
}

export function dialogHead(desk, title, ...extra) {
  return el("header", { class: "tj-dialog-head" }, el("h2", { text: title }), ...extra, el("button", { class: "tj-quiet", text: "Close", "aria-label": "Close", on: { click: () => desk.part("dialog").close() } }));
}

export function showKeys(desk, problem = "") {
  const groups = ["Read", "Label", "Finish"].map((group) =>
    el("section", {}, el("h3", { text: group }), ...TJ_KEYS.filter((entry) => entry.group === group).map((entry) => keyRow(desk, entry))),
  );
  const reset = el("button", { class: "tj-quiet", text: "Reset keys", on: { click: () => desk.keyboard.setKeys({}) || showKeys(desk) } });
  const changed = Object.keys(desk.keyboard.keyOverrides).length > 0;
  openDialog(
    desk,
    "Keys",
    dialogHead(desk, "Keys", changed ? reset : null),
    el("p", { class: "tj-hint", text: "Choose a key to change it, then press the new one. Typing in a field never triggers a key. Streamlit uses R and C." }),
    el("p", { class: "tj-problem", role: "alert", text: problem }),
    el("div", { class: "tj-keys" }, ...groups),
  );
}

function keyRow(desk, entry) {
  const title = entry.id.startsWith("dimension") ? desk.dimensions[+entry.id.slice(9) - 1]?.title : entry.title;
  if (!title) return null;
  const keys = keysOf(entry.id, desk.keyboard.keyOverrides).map((key) => el("kbd", { text: keyLabel(key) }));
  const button = el("button", { class: "tj-key", disabled: entry.fixed, "aria-label": `Change the key of: ${title}`, "data-action": entry.id }, ...keys);
  button.onclick = () => {
    replaceIn(button, el("em", { text: "press a key" }));
    button.onkeydown = (event) => takeKey(desk, entry, event);
  };
  return el("div", { class: "tj-key-row" }, button, el("span", { text: title }));
}

function takeKey(desk, entry, event) {
  event.preventDefault();
  event.stopPropagation();
  if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
  if (event.key === "Escape") return showKeys(desk);
  const key = pressedKey(event);
  const problem = key === null ? "This key cannot be used." : keyConflict(entry.id, key, desk.keyboard.keyOverrides);
  if (problem === null) desk.keyboard.setKeys({ ...desk.keyboard.keyOverrides, [entry.id]: key });
  showKeys(desk, problem || "");
}

export function askSkip(desk) {
  const reason = el("textarea", { class: "tj-field", rows: 3, "aria-label": "Reason", placeholder: "Why do you skip this trace? An administrator reads this reason." });
  reason.value = desk.submission.skipDraft || desk.work.state.review.reason;
  reason.oninput = () => (desk.submission.skipDraft = reason.value); // Esc closes the dialog, not what was written
  const skip = el("button", { class: "tj-primary", text: "Skip this trace" });
  skip.onclick = () => {
    if (!reason.value.trim()) return reason.focus();
    desk.part("dialog").close();
    desk.submission.finish("skipped", reason.value.trim());
  };
  openDialog(desk, "Skip this trace", dialogHead(desk, "Skip this trace"), reason, el("div", { class: "tj-dialog-acts" }, skip));
  reason.focus();
}

/** Before the judges are shown: what it means, and that there is no way back. */
export function askReveal(desk) {
  const { errors } = desk.work.state;
  const go = el("button", { class: "tj-primary", text: "Reveal" });
  go.onclick = () => {
    desk.part("dialog").close();
    desk.submission.reveal();
  };
  openDialog(
    desk,
    "Reveal",
    dialogHead(desk, "Reveal judges' findings and other annotators' errors?"),
    el("p", { text: `Your ${plural(errors.length, "error")} and your scores can then no longer change: they are your blind answer. You can still add errors and change scores; those labels are marked “after reveal” and counted separately.` }),
    el("p", { class: "tj-hint", text: "You cannot undo a reveal. To change a label first, close this dialog and choose Reopen." }),
    el("div", { class: "tj-dialog-acts" }, go),
  );
  go.focus();
}

export function showRefused(desk) {
  const items = desk.work.outbox.parked.map((item) => el("li", {}, el("b", { text: describeOperation(item.op) }), el("span", { text: " " + item.reason })));
  openDialog(
    desk,
    "Changes that were refused",
    dialogHead(desk, "The server refused these changes"),
    el("ul", { class: "tj-changes" }, ...items),
    el("p", { class: "tj-hint", text: "The changes stay in this browser until you send or delete them." }),
    el(
      "div",
      { class: "tj-dialog-acts" },
      el("button", { class: "tj-secondary", text: "Delete changes", on: { click: () => desk.part("dialog").close() || desk.work.dropRefused() } }),
      el("button", { class: "tj-primary", text: "Send again", on: { click: () => desk.part("dialog").close() || desk.work.outbox.nudge() } }),
    ),
  );
}

export function showGuideline(desk) {
  const sections = desk.dimensions.map(({ key, title, about, anchors }) =>
    el("section", { class: "tj-guideline" }, el("h3", { text: `${key}  ${title}` }), el("p", { text: about }), ...anchors.map(([points, meaning]) => el("div", { class: "tj-anchor" }, el("b", { text: points }), el("span", { text: meaning })))),
  );
  openDialog(desk, "Guideline", dialogHead(desk, "Guideline"), ...sections);
}

function plural(count, word) {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

function describeOperation({ kind, payload }) {
  if (kind === "error.delete") return "an error deleted";
  if (kind === "reveal") return "judges’ findings revealed";
  if (kind === "error.put") return `error ${payload.dimensions.join(" ") || "without dimension"}${payload.impact ? ", " + payload.impact : ""}${payload.description ? ": " + payload.description.slice(0, 60) : ""}`;
  if (kind === "score.put") return `${payload.dimension}: ${payload.not_applicable ? "not applicable" : payload.value === null ? "no score" : payload.value}`;
  return payload.status === "open" ? "no error: " + (payload.no_error ? "ticked" : "not ticked") : payload.status;
}
