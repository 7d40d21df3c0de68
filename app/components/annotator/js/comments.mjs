// Comments on the span or error in hand: read and written in a box of their own, a text that is not stored yet is kept.

import { dialogHead, openDialog } from "./dialogs.mjs";
import { el, recall, remember, replaceIn, say } from "./page.mjs";

const TJ_COMMENT_LENGTH = 10000; // characters

export class Comments {
  constructor(desk) {
    this.desk = desk;
    this.list = el("ol", { class: "tj-comments" });
    this.hidden = el("p", { class: "tj-hint" });
    this.names = el("div", { class: "tj-comment-names", role: "group", "aria-label": "People to mention" });
  }

  get path() {
    return "comments/" + encodeURIComponent(this.desk.traceId);
  }

  get draftName() {
    return `tj:comment:${this.desk.user}:${this.desk.traceId}`;
  }

  /** The span in hand, or the error where its pane has the focus. */
  newDraft() {
    const { desk } = this;
    const error = desk.pane === "errors" ? desk.cards.error : null;
    const spanId = error ? error.span_ids[0] || null : desk.trace.spans.id[desk.place.current];
    return { comment_id: desk.work.newId(), span_id: spanId, label_id: error?.label_id || null, body: "" };
  }

  open() {
    this.others = "";
    this.draft = recall(this.draftName, null) || this.newDraft();
    this.show();
    this.load();
  }

  show() {
    const { desk } = this;
    this.field = el("textarea", { class: "tj-field", dir: "auto", rows: 4, maxlength: TJ_COMMENT_LENGTH, "aria-label": "Comment", placeholder: "@name notifies a person. Ctrl+Enter saves" });
    this.field.value = this.draft.body;
    this.field.oninput = () => this.keep({ ...this.draft, body: this.field.value });
    this.field.onkeydown = (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      this.save();
    };
    const save = el("button", { class: "tj-primary", text: "Save", on: { click: () => this.save() } });
    const form = desk.data.read_only ? [] : [el("p", { class: "tj-hint", text: `About ${this.aboutText(this.draft)}` }), this.field, this.names, el("div", { class: "tj-dialog-acts" }, save)];
    openDialog(desk, "Comments", dialogHead(desk, "Comments"), this.list, this.hidden, ...form, el("p", { class: "tj-hint", text: "Other people can read a comment only when they may see others' labels of this trace. That you read a comment of somebody else is recorded." }));
    this.field.focus();
  }

  keep(draft) {
    this.draft = draft;
    remember(this.draftName, draft);
  }

  forget() {
    window.localStorage.removeItem(this.draftName);
    this.draft = this.newDraft();
    this.field.value = "";
  }

  /** Hidden comments of others come only once the reader has asked for them. */
  async load() {
    const answer = await this.desk.connection.fetchJson(this.path, this.others && { others: this.others });
    if (!answer) return;
    replaceIn(this.hidden, ...this.hiddenText(answer.hidden));
    replaceIn(this.list, ...answer.comments.map((comment) => this.item(comment)));
    replaceIn(this.names, ...answer.people.map((name) => el("button", { class: "tj-quiet", text: "@" + name, on: { click: () => this.mention(name) } })));
  }

  hiddenText(count) {
    if (!count) return [];
    const comments = count === 1 ? "1 comment of others is" : `${count} comments of others are`;
    return [`${comments} hidden until you submit this trace. If you read them earlier, labels that you change afterwards are stored as not blind. `, this.act("Show now", () => this.showHidden())];
  }

  showHidden() {
    this.others = "show";
    this.field.focus(); // the button goes
    return this.load();
  }

  item(comment) {
    const { is_own: isOwn, author, body, mentions, kind } = comment;
    const when = new Date((comment.edited_at || comment.written_at) / 1000).toLocaleString();
    const notes = [when, comment.edited_at && "edited", kind === "return" && "returned for another look", mentions.length && `for ${mentions.join(", ")}`].filter(Boolean);
    const acts = isOwn && kind === "comment" && !this.desk.data.read_only ? [this.act("Edit", () => this.edit(comment)), this.act("Delete", () => this.delete(comment))] : [];
    return el("li", { class: "tj-comment" }, el("div", {}, el("b", {}, el("bdi", { text: isOwn ? "You" : author })), this.about(comment), el("span", { class: "tj-quiet-text", text: notes.join(" · ") }), ...acts), el("p", { dir: "auto", text: body }));
  }

  act(text, click) {
    return el("button", { class: "tj-quiet", text, on: { click } });
  }

  about(comment) {
    const seq = this.desk.trace.spans.seqOf.get(comment.span_id);
    if (seq === undefined) return el("span", { text: this.aboutText(comment) });
    return el("button", { class: "tj-link", text: this.aboutText(comment), on: { click: () => (this.desk.part("dialog").close(), this.desk.place.select(seq)) } });
  }

  aboutText({ span_id: spanId, label_id: labelId }) {
    const seq = this.desk.trace.spans.seqOf.get(spanId);
    const span = seq === undefined ? (spanId ? "a span that this trace no longer has" : "the trace") : "S" + (seq + 1);
    const at = this.desk.work.state.errors.findIndex((error) => error.label_id === labelId);
    return labelId ? `${at < 0 ? "an error" : `error ${at + 1}`} at ${span}` : span;
  }

  mention(name) {
    this.field.setRangeText(`@${name} `, this.field.selectionStart, this.field.selectionEnd, "end");
    this.field.dispatchEvent(new Event("input"));
    this.field.focus();
  }

  edit({ comment_id, span_id, label_id, body }) {
    this.keep({ comment_id, span_id, label_id, body });
    this.show();
  }

  async save() {
    const sent = { ...this.draft };
    if (!sent.body.trim()) return this.field.focus();
    if (!(await this.send(sent))) return undefined; // the text stays in the box and in this browser
    say(this.desk, "Comment saved");
    if (this.draft.comment_id === sent.comment_id && this.draft.body === sent.body) this.forget();
    return this.load();
  }

  async delete({ comment_id }) {
    if (await this.send({ comment_id, deleted: true })) this.load();
  }

  /** Whether the server has taken it; why not is said. */
  async send(body) {
    const { connection } = this.desk;
    try {
      const answer = await connection.withPass(() => connection.post(this.path, { token: this.desk.data.token, ...body }));
      if (answer.status === 200) return true;
      say(this.desk, `Not saved: ${answer.body.error || `the server answered ${answer.status}`}. ${answer.body.remedy || ""}`, true);
    } catch {
      say(this.desk, "Not saved: no connection to the server. The text stays in this browser", true);
    }
    return false;
  }
}
