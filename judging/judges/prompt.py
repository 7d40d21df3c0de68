"""The prompt of a judge: rules first, then the trace behind a fence, the rubric last, so that judges share a prefix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from string import Template
from typing import Any, Literal

from tracejury.judging.judges.reply import Form
from tracejury.judging.judges.rubric import AgentDescription, ExampleFinding, ExampleReply, Rubric

Order = Literal["cache", "paper"]
"""`cache`: trace, then rubric (judges and repeats share the prefix). `paper`: rubric, trace, then the form."""

MARK_LENGTH = 8  # hex digits of a fence


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What is sent: `system`, then `prefix` + `suffix` as one user message. The prefix is what calls can share."""

    system: str
    prefix: str
    suffix: str

    @cached_property
    def hash(self) -> str:
        return wording_hash(self.system, self.prefix, self.suffix)

    @property
    def prefix_hash(self) -> str:
        return wording_hash(self.system, self.prefix)

    def __str__(self) -> str:
        return f"{self.system}\n\n{self.prefix}{self.suffix}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanToJudge:
    """The one span that a call of the span-by-span mode is about."""

    span_id: str
    ordinal: str


def build_prompt(
    text: str,
    rubric: Rubric,
    *,
    form: Form = "json",
    order: Order = "cache",
    agent: AgentDescription | None = None,
    span: SpanToJudge | None = None,
) -> Prompt:
    """The prompt for one rubric and one trace text; equal arguments give equal bytes."""
    return Prompts(text).build(rubric, form=form, order=order, agent=agent, span=span)


class Prompts:
    """The prompts about one trace text: each is made (and hashed) once, however many calls send it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._traces: dict[AgentDescription | None, str] = {}
        self._made: dict[tuple[object, ...], Prompt] = {}

    def build(
        self,
        rubric: Rubric,
        *,
        form: Form = "json",
        order: Order = "cache",
        agent: AgentDescription | None = None,
        span: SpanToJudge | None = None,
    ) -> Prompt:
        """As `build_prompt`. Rubrics are told apart by their key: one run has one of each."""
        key = (rubric.key, form, order, agent, span)
        if key not in self._made:
            self._made[key] = _prompt(self._trace(agent), rubric, form=form, order=order, span=span)
        return self._made[key]

    def _trace(self, agent: AgentDescription | None) -> str:
        if agent not in self._traces:
            about = "" if agent is None else _fill("agent.md", title=agent.title, text=agent.text)
            self._traces[agent] = about + fenced(self.text)
        return self._traces[agent]


def _prompt(trace: str, rubric: Rubric, *, form: Form, order: Order, span: SpanToJudge | None) -> Prompt:
    task = rubric_text(rubric, form)
    answer = _fill(f"{'template' if form == 'template' else 'json'}_{rubric.answer}.md")
    if form == "template" and rubric.not_applicable_phrases:
        answer += f"\nWhere the rubric does not apply, write only: {rubric.not_applicable_phrases[0]}\n"
    if span is not None:
        answer = _fill("span.md", ordinal=span.ordinal, span_id=span.span_id).lstrip("\n") + "\n" + answer
    if order == "paper":
        return Prompt(system=_fill("system.md"), prefix=f"{task}\n{trace}", suffix=answer)
    return Prompt(system=_fill("system.md"), prefix=trace, suffix=f"{task}\n{answer}")


def repair_request(reason: str) -> str:
    """What is said to a judge whose answer could not be read."""
    return _fill("repair.md", reason=reason)


def fenced(text: str) -> str:
    """The text between two fence lines whose mark does not occur in it, chosen by its content alone."""
    return _fill("trace.md", mark=fence_mark(text), text=text)


def fence_mark(text: str) -> str:
    """A mark that the text does not contain in any case, the same for the same text."""
    folded = text.lower()
    for attempt in range(1_000_000):
        mark = wording_hash(str(attempt), text)[:MARK_LENGTH]
        if mark not in folded:
            return mark
    raise AssertionError("a text cannot hold a million chosen marks")


def rubric_text(rubric: Rubric, form: Form) -> str:
    """The rubric as a judge reads it."""
    sections = [
        (f"Your rubric: {rubric.title} ({rubric.key})", rubric.judges),
        ("What counts as a plan", rubric.plan),
        ("Leave to other judges", "\n".join(f"- {key}: {what}" for key, what in rubric.leaves.items())),
        ("Categories", rubric.category_guide or "\n".join(f"- {category}" for category in rubric.categories)),
        ("Score", _anchors(rubric)),
        ("When it does not apply", rubric.not_applicable),
        *((f"Example {n}, from another trace", _example(e, rubric, form)) for n, e in enumerate(rubric.examples, 1)),
    ]
    return "".join(f"# {title}\n\n{body}\n\n" for title, body in sections if body)


def example_reply(reply: ExampleReply, rubric: Rubric, form: str) -> str:
    """The reply of an example, in the form asked for: our own reader takes it."""
    if form == "template":
        return _template_reply(reply, rubric)
    content: dict[str, Any] = {
        "criteria": reply.criteria,
        "rationale": reply.rationale,
        "findings": [_finding(finding, rubric) for finding in reply.findings],
    }
    if rubric.answer == "score":
        content |= {"score": reply.score, "not_applicable": reply.not_applicable}
    return json.dumps(content, ensure_ascii=False)


def prompts_version() -> str:
    """Hash of all wording that is not a rubric's: part of every judge's version."""
    names = sorted(entry.name for entry in resources.files("tracejury.judging.judges").joinpath("prompts").iterdir())
    return wording_hash(*(_file(name) for name in names if name.endswith(".md")))[:16]


def _anchors(rubric: Rubric) -> str | None:
    anchors = rubric.anchors
    if anchors is None:
        return None
    return f"- 3: {anchors.full}\n- Between: {anchors.middle}\n- 0: {anchors.none}"


def _example(example: Any, rubric: Rubric, form: Form) -> str:
    return f"{example.trace}\n\nA right answer:\n{example_reply(example.reply, rubric, form)}"


def _finding(finding: ExampleFinding, rubric: Rubric) -> dict[str, Any]:
    content = {
        "description": finding.description,
        "evidence": finding.evidence,
        "citations": list(finding.citations),
        "impact": finding.impact,
    }
    return content | ({"category": finding.category} if rubric.categories else {})


def _template_reply(reply: ExampleReply, rubric: Rubric) -> str:
    if reply.not_applicable is not None:
        return rubric.not_applicable_phrases[0] if rubric.not_applicable_phrases else reply.not_applicable
    lines = [f"Criteria: {reply.criteria}", f"Supporting Evidence: {reply.rationale}", "Findings:"]
    lines += _finding_lines(reply.findings) or ["none"]
    if rubric.answer == "score":
        lines.append(f"Score: {reply.score}")
    return "\n".join(lines)


def _finding_lines(findings: Sequence[ExampleFinding]) -> list[str]:
    lines = []
    for finding in findings:
        quote = finding.evidence.replace("|", "/")
        fields = [", ".join(finding.citations), finding.impact or "", finding.description, f'"{quote}"']
        lines.append("- " + " | ".join([*fields, *([finding.category] if finding.category else [])]))
    return lines


def _fill(name: str, **values: str) -> str:
    return Template(_file(name)).substitute(values)


@cache
def _file(name: str) -> str:
    return resources.files("tracejury.judging.judges").joinpath("prompts", name).read_text(encoding="utf-8")


def wording_hash(*texts: str) -> str:
    """SHA-256 of texts in order; where one ends and the next begins counts."""
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
