"""One rubric, one model, one text: a `Verdict` or a `Failure`, with at most one repair call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import orjson

from tracejury.ingest.trace import Json
from tracejury.judging.judges.citations import resolve_citations
from tracejury.judging.judges.evidence import Finder
from tracejury.judging.judges.model import Model, ModelError, ModelReply, ModelRequest, Turn, repair_turns
from tracejury.judging.judges.prompt import Order, Prompt, Prompts, SpanToJudge, repair_request
from tracejury.judging.judges.reply import Form, ParsedFinding, ParsedReply, Unparsable, read_reply, reply_schema
from tracejury.judging.judges.rubric import AgentDescription, Rubric
from tracejury.judging.judges.trace_text import Block, TraceText
from tracejury.judging.records import Call, Failure, FailureState, Finding, Verdict, VerdictState

N = TypeVar("N", int, float)
ALL_FORMS: tuple[Form, ...] = ("json", "tool", "template")
ERRORS_ONLY = "this judge reports errors and gives no score"
SPAN_KINDS_JUDGED = frozenset({"LLM", "TOOL", "RETRIEVER", "RERANKER", "EMBEDDING", "GUARDRAIL", "EVENT"})


@dataclass(frozen=True, kw_only=True)
class Judge:
    """Who judges, and how it is asked. `parameters` are sent to the provider as they are, only those set."""

    rubric: Rubric
    model: str
    parameters: Mapping[str, Json] = field(default_factory=dict)
    order: Order = "cache"
    repairs: bool = True

    @cached_property
    def schema(self) -> Mapping[str, Any]:
        return reply_schema(self.rubric)


@dataclass(kw_only=True)
class ModelCapabilities:
    """What a model has been found to take: forms still to be tried, best first, and parameters left out."""

    forms: list[Form] = field(default_factory=lambda: list(ALL_FORMS))
    left_out: set[str] = field(default_factory=set)

    def give_way(self, error: ModelError, request: ModelRequest) -> bool:
        """Give up the form or parameter that the model rejects; whether there is now something else to try."""
        if error.kind == "rejected_parameter" and error.parameter in request.parameters:
            self.left_out.add(str(error.parameter))
            return True
        if error.kind == "rejected_form" and request.form != "template":
            if self.forms[0] == request.form and len(self.forms) > 1:  # another call may have done it
                del self.forms[0]
            return self.forms[0] != request.form
        return False


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What fits: `context` tokens in all, `answer` of them kept for the answer, counted by `count`."""

    context: int
    count: Callable[[str], int]
    answer: int = 0

    def excess(self, prompt: Prompt) -> str | None:
        """Why the prompt does not fit; None where it does."""
        tokens = sum(self.count(text) for text in (prompt.system, prompt.prefix, prompt.suffix) if text)
        if tokens + self.answer <= self.context:
            return None
        return f"{tokens:,} tokens counted, {self.answer:,} kept for the answer; the model takes {self.context:,}"


async def judge_trace(
    judge: Judge,
    reading: TraceText,
    model: Model,
    *,
    agent: AgentDescription | None = None,
    span: SpanToJudge | None = None,
    capabilities: ModelCapabilities | None = None,
    limit: Limit | None = None,
    share_prefix: bool = False,
    finder: Finder | None = None,
    prompts: Prompts | None = None,
) -> Verdict | Failure:
    """Ask one judge once about a trace (or one `span` of it). `finder` and `prompts` of this reading can be shared.

    Every `ModelError` becomes a Failure; any other exception is a fault of ours, or a stop, and passes through.
    """
    talk = _JudgeConversation(
        judge=judge,
        reading=reading,
        model=model,
        agent=agent,
        span=span,
        capabilities=capabilities or ModelCapabilities(),
        limit=limit,
        share_prefix=share_prefix,
        finder=finder or Finder(reading),
        prompts=prompts or Prompts(reading.text),
    )
    return await talk.outcome()


async def judge_spans(
    judge: Judge,
    reading: TraceText,
    model: Model,
    *,
    agent: AgentDescription | None = None,
    capabilities: ModelCapabilities | None = None,
    limit: Limit | None = None,
    finder: Finder | None = None,
    prompts: Prompts | None = None,
) -> Verdict | Failure:
    """Ask the judge about each span that acts, one call a span, and put the outcomes together.

    Stops at the first span that gives no verdict: a trace with an unjudged span has no outcome of its own.
    """
    known, finder, prompts = (
        capabilities or ModelCapabilities(),
        finder or Finder(reading),
        prompts or Prompts(reading.text),
    )
    verdicts: dict[str, Verdict] = {}
    for block in spans_judged(reading):
        span = SpanToJudge(span_id=block.span_id, ordinal=block.ordinal)
        outcome = await judge_trace(
            judge,
            reading,
            model,
            agent=agent,
            span=span,
            capabilities=known,
            limit=limit,
            share_prefix=True,
            finder=finder,
            prompts=prompts,
        )
        if isinstance(outcome, Failure):
            return _failed_span(outcome, span, verdicts)
        verdicts[block.ordinal] = outcome
    return combine_spans(verdicts)


def spans_judged(reading: TraceText) -> tuple[Block, ...]:
    """The spans that the span-by-span mode asks about: those that act (model and tool calls, events), else all."""
    acting = tuple(block for block in reading.blocks if _kind(block) in SPAN_KINDS_JUDGED)
    return acting or reading.blocks


def combine_spans(verdicts: Mapping[str, Verdict]) -> Verdict:
    """One verdict for the trace from those of its spans (by ordinal): all findings, and the lowest score.

    Not applicable only where it is so for every span. Raises ValueError without any span.
    """
    if not verdicts:
        raise ValueError("no span was judged")
    first = next(iter(verdicts.values()))
    scores = {ordinal: verdict.score for ordinal, verdict in verdicts.items() if verdict.score is not None}
    lowest = min(scores.values(), default=None)
    where = [ordinal for ordinal, score in scores.items() if score == lowest]
    return Verdict(
        rubric=first.rubric,
        trace_id=first.trace_id,
        state=first.state if lowest is None else "scored",
        score=lowest,
        criteria=first.criteria,
        rationale="\n".join(f"{ordinal} ({v.score}): {v.rationale}" for ordinal, v in verdicts.items()),
        findings=tuple(finding for verdict in verdicts.values() for finding in verdict.findings),
        call=_joint_call(verdicts),
        reason=first.reason if lowest is None else None,
        notes=(
            *(() if lowest is None else (f"span_mode: the lowest of {len(scores)} scores, at {', '.join(where)}",)),
            *dict.fromkeys(note for verdict in verdicts.values() for note in verdict.notes),
        ),
    )


def resolve_findings(
    parsed: Iterable[ParsedFinding], reading: TraceText, rubric: Rubric, *, finder: Finder | None = None
) -> tuple[Finding, ...]:
    """Findings with each citation resolved (or kept as unresolved) and each quote looked for in the trace."""
    looks = finder or Finder(reading)
    return tuple(_finding(finding, looks, rubric) for finding in parsed)


def _finding(parsed: ParsedFinding, finder: Finder, rubric: Rubric) -> Finding:
    citations = resolve_citations(parsed.citations, finder.reading)
    cited = [citation.span_id for citation in citations if citation.span_id is not None]
    place = finder.place(parsed.evidence, cited)
    return Finding(
        description=parsed.description,
        evidence=parsed.evidence,
        citations=citations,
        dimension=rubric.dimension,
        impact=parsed.impact,
        category=parsed.category,
        evidence_place=None if place is None else place.place,
        evidence_span_id=None if place is None else place.span_id,
    )


@dataclass(kw_only=True)
class _JudgeConversation:
    """The calls of one judgement: what was sent, what came back, what the model would not take."""

    judge: Judge
    reading: TraceText
    model: Model
    agent: AgentDescription | None
    span: SpanToJudge | None
    capabilities: ModelCapabilities
    limit: Limit | None
    share_prefix: bool
    finder: Finder
    prompts: Prompts
    prompt: Prompt | None = None
    replies: list[ModelReply] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    failed_calls: int = 0

    async def outcome(self) -> Verdict | Failure:
        try:
            first = await self._ask()
            if isinstance(first, Failure):
                return first
            parsed = self._read(first)
            if isinstance(parsed, Unparsable) and self.judge.repairs and not refusal_of(first):
                parsed = await self._repaired(first, parsed)
        except ModelError as error:
            return self._failure(FAILED_AS.get(error.kind, "error"), f"{error.kind}: {error.message}")
        if isinstance(parsed, ParsedReply):
            return self._verdict(parsed)
        refusal = refusal_of(self.replies[-1])
        return self._failure("unparsable" if refusal is None else "refused", refusal or parsed.reason)

    async def _ask(self, turns: tuple[Turn, ...] = ()) -> ModelReply | Failure:
        """One reply; a rejected form or parameter is given up, recorded, and the call made again without it."""
        while True:
            request = self._request(turns)
            excess = None if self.limit is None else self.limit.excess(request.prompt)
            if excess is not None:
                return self._failure("too_long", f"not sent: {excess}")
            try:
                reply = await self.model(request)
            except ModelError as error:
                self.failed_calls += 1
                if not self._gives_way(error, request):
                    raise
                continue
            self.replies.append(reply)
            return reply

    def _request(self, turns: tuple[Turn, ...]) -> ModelRequest:
        form = self.capabilities.forms[0]
        self.prompt = self.prompts.build(
            self.judge.rubric, form=form, order=self.judge.order, agent=self.agent, span=self.span
        )
        sent = {name: value for name, value in self.judge.parameters.items() if name not in self.capabilities.left_out}
        return ModelRequest(
            prompt=self.prompt,
            form=form,
            schema=self.judge.schema,
            parameters=sent,
            turns=turns,
            share_prefix=self.share_prefix,
        )

    def _gives_way(self, error: ModelError, request: ModelRequest) -> bool:
        if error.kind == "rejected_parameter" and error.parameter in request.parameters:
            self.refused.append(f"{error.parameter}: {error.message}")
        if error.kind == "rejected_form" and request.form != "template":
            self.refused.append(f"{request.form}: {error.message}")
        return self.capabilities.give_way(error, request)

    def _read(self, reply: ModelReply) -> ParsedReply | Unparsable:
        bad = unusable(reply)
        return read_reply(reply.text, self.judge.rubric) if bad is None else bad

    async def _repaired(self, first: ModelReply, bad: Unparsable) -> ParsedReply | Unparsable:
        try:
            second = await self._ask(repair_turns(first.text, repair_request(bad.reason)))
        except ModelError as error:
            return Unparsable(f"{bad.reason}; the repair call failed: {error.kind}: {error.message}")
        if isinstance(second, Failure):
            return bad
        parsed = self._read(second)
        if isinstance(parsed, Unparsable):
            return Unparsable(f"{bad.reason}; after the repair call: {parsed.reason}")
        return parsed

    def _verdict(self, parsed: ParsedReply) -> Verdict:
        errors_only = self.judge.rubric.answer == "errors"
        call = self._call()
        unscored: VerdictState = "errors_only" if errors_only else "not_applicable"
        return Verdict(
            rubric=self.judge.rubric.key,
            trace_id=self.reading.trace_id,
            state=unscored if parsed.score is None else "scored",
            score=parsed.score,
            criteria=parsed.criteria,
            rationale=parsed.rationale,
            findings=resolve_findings(parsed.findings, self.reading, self.judge.rubric, finder=self.finder),
            call=replace(call, reasoning=_joined(call.reasoning, parsed.reasoning)),
            reason=ERRORS_ONLY if errors_only else parsed.not_applicable,
            notes=(*parsed.notes, *self.finder.notes),
        )

    def _failure(self, state: FailureState, reason: str) -> Failure:
        return Failure(
            rubric=self.judge.rubric.key,
            trace_id=self.reading.trace_id,
            state=state,
            reason=reason,
            call=self._call(),
        )

    def _call(self) -> Call:
        parameters: dict[str, Json] = {**self.judge.parameters, "form": self.capabilities.forms[0]}
        if self.refused:
            parameters["rejected"] = [*self.refused]
        if self.capabilities.left_out:
            parameters["left_out"] = [*sorted(self.capabilities.left_out)]
        return call_of(self.judge.model, parameters, self.prompt, self.replies, self.failed_calls)


def call_of(
    model: str, parameters: Mapping[str, Json], prompt: Prompt | None, replies: Sequence[ModelReply], failed_calls: int
) -> Call:
    """What one outcome took: the first reply and that of the repair call, tokens and cost of all of them."""
    raw = [reply.text for reply in replies]
    return Call(
        model=model,
        parameters=parameters,
        prompt_hash="" if prompt is None else prompt.hash,
        raw_reply=raw[0] if raw else None,
        repair_reply=raw[1] if len(raw) > 1 else None,
        reasoning=_joined(*(reply.reasoning for reply in replies)),
        finish_reason=replies[-1].finish_reason if replies else None,
        prompt_tokens=_sum(reply.prompt_tokens for reply in replies),
        completion_tokens=_sum(reply.completion_tokens for reply in replies),
        cached_tokens=_sum(reply.cached_tokens for reply in replies),
        cost_usd=_sum(reply.cost_usd for reply in replies),
        latency_s=_sum(reply.latency_s for reply in replies),
        attempts=sum(reply.attempts for reply in replies) + failed_calls,
    )


def _joined(*texts: str | None) -> str | None:
    """The texts one after another, each once; None without any."""
    return "\n\n".join(dict.fromkeys(text for text in texts if text)) or None


FAILED_AS: Mapping[str, FailureState] = {"too_long": "too_long", "refused": "refused"}


def unusable(reply: ModelReply) -> Unparsable | None:
    """Why the text of a reply is not read at all: refused, or cut off. None where it is."""
    refusal = refusal_of(reply)
    if refusal is not None:
        return Unparsable(refusal)
    return Unparsable("the reply was cut off at the token limit") if reply.finish_reason == "length" else None


def refusal_of(reply: ModelReply) -> str | None:
    """Why the reply is a refusal; None where it is none."""
    if reply.refusal:
        return f"the model refused: {reply.refusal}"
    return "the provider's content filter stopped the reply" if reply.finish_reason == "content_filter" else None


def _sum(values: Iterable[N | None]) -> N | None:
    """The sum; None where a part is unknown: a sum of the rest would pass for the whole."""
    total: N | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else total + value
    return total


def _kind(block: Block) -> str:
    return block.header.split("] ", 1)[-1].split(" ", 1)[0]


def _failed_span(failure: Failure, span: SpanToJudge, verdicts: Mapping[str, Verdict]) -> Failure:
    calls = [*(verdict.call for verdict in verdicts.values()), failure.call]
    raw = {**{ordinal: v.call.raw_reply for ordinal, v in verdicts.items()}, span.ordinal: failure.call.raw_reply}
    return Failure(
        rubric=failure.rubric,
        trace_id=failure.trace_id,
        state=failure.state,
        reason=f"{span.ordinal}: {failure.reason}",
        call=_summed(calls, raw, {}),
    )


def _joint_call(verdicts: Mapping[str, Verdict]) -> Call:
    raw = {ordinal: verdict.call.raw_reply for ordinal, verdict in verdicts.items()}
    repairs = {o: v.call.repair_reply for o, v in verdicts.items() if v.call.repair_reply is not None}
    return _summed([verdict.call for verdict in verdicts.values()], raw, repairs)


def _summed(calls: Sequence[Call], raw: Mapping[str, str | None], repairs: Mapping[str, str | None]) -> Call:
    """One `Call` for many: tokens and costs are sums, replies a JSON object by span."""
    last = calls[-1]
    return Call(
        model=last.model,
        parameters=last.parameters,
        prompt_hash=last.prompt_hash,
        raw_reply=orjson.dumps(raw).decode(),
        repair_reply=orjson.dumps(repairs).decode() if repairs else None,
        reasoning=_joined(*(call.reasoning for call in calls)),
        finish_reason=last.finish_reason,
        prompt_tokens=_sum(call.prompt_tokens for call in calls),
        completion_tokens=_sum(call.completion_tokens for call in calls),
        cached_tokens=_sum(call.cached_tokens for call in calls),
        cost_usd=_sum(call.cost_usd for call in calls),
        latency_s=_sum(call.latency_s for call in calls),
        attempts=sum(call.attempts for call in calls),
    )
