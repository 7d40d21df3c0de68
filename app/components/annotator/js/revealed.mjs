// Beside one's own labels, once submitted and revealed: what judges and other people said of the trace.

import { el, meaningOf, replaceIn } from "./page.mjs";
import { impactDot } from "./errors.mjs";

export class Revealed {
  constructor(desk, found) {
    this.desk = desk;
    this.found = found;
    const said = [...found.judge_models.map((one) => one.findings), ...found.people.map((person) => person.errors)];
    desk.part("judges-count").textContent = said.reduce((sum, each) => sum + each.length, 0);
    this.draw();
  }

  draw() {
    const { judge_models: judgeModels, people } = this.found;
    const nothing = !judgeModels.length && !people.length ? el("p", { class: "tj-empty", text: "No judge has judged this trace yet, and no other annotator has submitted it." }) : null;
    replaceIn(this.desk.part("judges"), ...judgeModels.map((one) => this.judgeModel(one)), ...people.map((person) => this.person(person)), nothing);
  }

  judgeModel({ name, judges, findings }) {
    const none = findings.length ? null : el("p", { class: "tj-hint", text: judges.some((judge) => judge.score !== null) ? "This judge reports no error." : "This judge gave no verdict." });
    return el("section", { class: "tj-said", "aria-label": name }, el("h3", {}, el("bdi", { text: name }), count(findings.length, "finding")), this.judges(judges), none, ...findings.map((finding) => this.finding(finding)));
  }

  judges(judges) {
    const answers = judges.map((judge) =>
      el("span", { class: "tj-answer", title: judge.reason || judge.rationale || null }, el("b", { title: meaningOf(judge.rubric), text: judge.rubric }), " " + answerText(judge)),
    );
    const reasons = judges.filter((judge) => judge.rationale || judge.reason);
    const more = reasons.length
      ? el("details", { class: "tj-reasons" }, el("summary", { text: "Reasons" }), ...reasons.map((judge) => el("p", { dir: "auto" }, el("b", { text: judge.rubric + " " }), judge.rationale || judge.reason)))
      : null;
    return el("div", { class: "tj-answers" }, ...answers, more);
  }

  finding(finding) {
    const { desk } = this;
    const own = finding.labels.map((id) => desk.work.state.errors.findIndex((error) => error.label_id === id) + 1).filter(Boolean);
    const dimension = finding.dimension || finding.rubric;
    return el(
      "article",
      { class: "tj-finding" },
      el("div", { class: "tj-finding-head" }, impactDot(finding.impact), el("b", { title: meaningOf(dimension), text: dimension }), el("span", { class: "tj-quiet-text", text: finding.impact || "no impact" }), finding.category ? el("span", { class: "tj-tag", text: finding.category }) : null, own.length ? el("span", { class: "tj-tag tj-tag-plan", text: `matches your ${own.map((n) => "error " + n).join(", ")}` }) : null),
      el("p", { class: "tj-finding-text", dir: "auto", text: finding.description || "No description" }),
      finding.evidence ? this.quote(finding.evidence, finding.evidence_span_id, placeText(finding.evidence_place)) : null,
      this.citations(finding.citations),
    );
  }

  /** Each place a judge names; one that is no span of the trace stays, marked. */
  citations(citations) {
    if (!citations.length) return el("p", { class: "tj-hint", text: "The finding cites no span." });
    const seen = new Set();
    const chips = citations.map(([cite, spanId]) => {
      const seq = this.desk.trace.spans.seqOf.get(spanId);
      if (seq === undefined) return el("span", { class: "tj-cite tj-cite-lost", title: "This citation matches no span of the trace" }, el("bdi", { text: cite.slice(0, 60) || "(empty)" }), " matches no span");
      if (seen.has(seq)) return null;
      seen.add(seq);
      return el("button", { class: "tj-cite", title: cite, text: "S" + (seq + 1), "aria-label": `Go to span S${seq + 1}`, on: { click: () => this.desk.place.select(seq) } });
    });
    return el("div", { class: "tj-cites" }, ...chips);
  }

  quote(text, spanId, place) {
    const isThere = this.desk.trace.spans.seqOf.has(spanId);
    const words = isThere
      ? el("button", { class: "tj-quote-text", dir: "auto", title: "Show this quote in the conversation", text, on: { click: () => this.desk.cards.showEvidence({ quote: text, span_id: spanId, field: null, start: null, end: null, before: "", after: "" }) } })
      : el("span", { class: "tj-quote-text", dir: "auto", text });
    return el("div", { class: "tj-quote" + (isThere ? "" : " tj-quote-lost") }, words, place ? el("span", { class: "tj-quote-place", text: place }) : null);
  }

  person({ name, no_error, errors, scores }) {
    const given = scores.filter((score) => score.phase === "blind");
    const none = errors.length ? null : el("p", { class: "tj-hint", text: no_error ? "This annotator ticked “No error in this trace”." : "This annotator labelled no error." });
    return el(
      "section",
      { class: "tj-said", "aria-label": name },
      el("h3", {}, el("bdi", { text: name }), count(errors.length, "error")),
      el("div", { class: "tj-answers" }, ...given.map((score) => el("span", { class: "tj-answer" }, el("b", { title: meaningOf(score.dimension), text: score.dimension }), " " + (score.not_applicable ? "n/a" : score.value)))),
      none,
      ...errors.map((error) => this.label(error)),
    );
  }

  label(error) {
    const [evidence] = error.evidence;
    return el(
      "article",
      { class: "tj-finding" },
      el("div", { class: "tj-finding-head" }, impactDot(error.impact), el("b", { title: error.dimensions.map(meaningOf).filter(Boolean).join("\n") || null, text: error.dimensions.join(" ") }), el("span", { class: "tj-quiet-text", text: error.impact }), error.category ? el("span", { class: "tj-tag", text: error.category }) : null, error.phase === "revealed" ? el("span", { class: "tj-tag tj-tag-after", text: "after reveal" }) : null),
      error.description ? el("p", { class: "tj-finding-text", dir: "auto", text: error.description }) : null,
      evidence ? this.quote(evidence.quote, evidence.span_id, "") : null,
      this.citations(error.span_ids.map((id) => [id, id])),
    );
  }
}

function answerText({ state, score }) {
  if (state === "scored") return String(score);
  return { not_applicable: "n/a", errors_only: "errors only", tied: "tied", unparsable: "unreadable", too_long: "too long", refused: "refused", error: "failed" }[state] || state;
}

function placeText(place) {
  return { "found elsewhere": "quoted from another span", "not found": "not in the trace" }[place] || "";
}

function count(number, what) {
  return el("span", { class: "tj-count", text: `${number} ${what}${number === 1 ? "" : "s"}` });
}
