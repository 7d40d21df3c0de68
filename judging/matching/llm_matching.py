"""A language model as one more proposer of matches: asked in a fenced prompt, read strictly, never counted as a word.

It reads what the rule of `judging.matching` reads (descriptions, quotes, spans, dimensions, categories), not the trace,
and never sees what the rule proposes. What comes back are proposals under the model's own name, or a `Failure`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from tracejury.ingest.trace import Json
from tracejury.judging.judges.judge import FAILED_AS, ModelCapabilities, call_of, refusal_of, unusable
from tracejury.judging.judges.limits import RateLimiter, StopRunError
from tracejury.judging.judges.model import (
    FATAL,
    RETRIED,
    Model,
    ModelError,
    ModelReply,
    ModelRequest,
    Turn,
    repair_turns,
)
from tracejury.judging.judges.prompt import Prompt, fence_mark, wording_hash
from tracejury.judging.judges.reply import Unparsable, read_object
from tracejury.judging.matching.rule import BY_MODEL, Candidate, assign, is_localized
from tracejury.judging.records import Call, ErrorLabel, Failure, FailureState, Match

LEAST = 0.5  # confidence from which a pair is proposed: below it the model itself holds it for unlikely
_QUOTED = 600  # characters of a quote that are shown, as the rule compares
_VERSION_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class LlmMatcher:
    """A model and how it is asked. `parameters` are sent to the provider as they are, only those set."""

    model: str
    call: Model
    parameters: Mapping[str, Json] = field(default_factory=dict)
    capabilities: ModelCapabilities = field(default_factory=ModelCapabilities)
    rate: RateLimiter = field(default_factory=lambda: RateLimiter(backoff_s=1.0))
    attempts: int = 6

    @property
    def author(self) -> str:
        """The author of its proposals: the model and the version of the prompt."""
        return f"{BY_MODEL}{self.model}@{match_prompt_version()}"


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """What a model proposes for one person and one judged cell, and how the answer came about."""

    matches: tuple[Match, ...]
    call: Call


def match_prompt_version() -> str:
    """Hash of all wording of the matching prompt."""
    files = resources.files("tracejury.judging.matching").joinpath("match_prompts").iterdir()
    return wording_hash(*(_file(name) for name in sorted(entry.name for entry in files) if name.endswith(".md")))[
        :_VERSION_DIGITS
    ]


def build_match_prompt(
    errors: Sequence[ErrorLabel], findings: Sequence[Candidate], *, parents: Mapping[str, str | None]
) -> Prompt:
    """The prompt for one person's errors and one cell's findings; equal arguments give equal bytes."""
    blocks = [_error_block(f"E{n}", error, parents) for n, error in enumerate(errors, 1)]
    blocks += [_finding_block(f"F{n}", candidate, parents) for n, candidate in enumerate(findings, 1)]
    text = "\n\n".join(blocks)
    data = Template(_file("data.md")).substitute(mark=fence_mark(text), text=text)
    return Prompt(system=_file("system.md"), prefix=data, suffix=_file("answer.md"))


async def propose_by_model(
    matcher: LlmMatcher,
    errors: Sequence[ErrorLabel],
    findings: Sequence[Candidate],
    *,
    rubric: str,
    parents: Mapping[str, str | None],
) -> Proposed | Failure:
    """Ask once (twice where the first answer cannot be read) which findings of `judge` describe which errors.

    One to one by the best assignment of confidences, as the rule does. Every `ModelError` becomes a Failure, which is
    no "no match"; `StopRunError` says that no further call makes sense.
    """
    talk = _JudgeConversation(matcher=matcher, prompt=build_match_prompt(errors, findings, parents=parents))
    try:
        first = await talk.ask()
        statements = _read(first, len(errors), len(findings))
        if isinstance(statements, Unparsable) and refusal_of(first) is None:
            statements = await talk.repaired(first, statements, len(errors), len(findings))
    except ModelError as error:
        return talk.failure(
            rubric, errors[0].trace_id, FAILED_AS.get(error.kind, "error"), f"{error.kind}: {error.message}"
        )
    if isinstance(statements, Unparsable):
        refusal = refusal_of(talk.replies[-1])
        return talk.failure(
            rubric, errors[0].trace_id, "refused" if refusal else "unparsable", refusal or statements.reason
        )
    return Proposed(matches=tuple(_one_to_one(statements, errors, findings, matcher.author)), call=talk.call())


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposedPair:
    """A pair as the model named it: positions from 0, its confidence, its reason."""

    error: int
    finding: int
    confidence: float
    reason: str


def read_pairs(text: str, errors: int, findings: int) -> tuple[ProposedPair, ...] | Unparsable:
    """The pairs in `text`: one JSON object and nothing else. A name that was not given, a pair named twice, a
    confidence outside 0 to 1 or another form is `Unparsable`, never guessed at."""
    content = read_object(text)
    if isinstance(content, Unparsable):
        return content
    pairs = content.get("pairs")
    if not isinstance(pairs, list) or set(content) != {"pairs"}:
        return Unparsable("the object must have the one key 'pairs', a list, empty if nothing matches")
    read: dict[tuple[int, int], ProposedPair] = {}
    for number, item in enumerate(pairs, 1):
        statement = _proposed_pair(item, number, errors, findings)
        if isinstance(statement, Unparsable):
            return statement
        if (statement.error, statement.finding) in read:
            return Unparsable(f"pair {number} appears twice")
        read[statement.error, statement.finding] = statement
    return tuple(read.values())


def pairs_schema() -> dict[str, Any]:
    """JSON schema of the answer."""
    properties = {
        "error": {"type": "string"},
        "finding": {"type": "string"},
        "confidence": {"type": "number"},
        "reason": {"type": "string"},
    }
    pair = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"pairs": {"type": "array", "items": pair}},
        "required": ["pairs"],
        "additionalProperties": False,
    }


@dataclass(kw_only=True)
class _JudgeConversation:
    """The calls of one question."""

    matcher: LlmMatcher
    prompt: Prompt
    replies: list[ModelReply] = field(default_factory=list)
    failed_calls: int = 0
    perhaps_paid: bool = False
    """A call went out and no answer came: whether the provider charges for it, nobody knows."""

    async def ask(self, turns: tuple[Turn, ...] = ()) -> ModelReply:
        """One reply; what may pass is tried again, a rejected form or parameter is given up."""
        attempt = 0
        while True:
            await self.matcher.rate.acquire(0)
            request = self._request(turns)
            try:
                reply = await self.matcher.call(request)
            except ModelError as error:
                self.failed_calls += 1
                self.perhaps_paid |= error.is_unknown
                if error.kind in FATAL:
                    raise StopRunError(f"{self.matcher.model}: {error.message}") from error
                if self.matcher.capabilities.give_way(error, request):
                    continue
                attempt += 1
                if error.kind not in RETRIED or attempt >= self.matcher.attempts:
                    raise
                await self.matcher.rate.back_off(attempt - 1, error)
                continue
            self.replies.append(reply)
            return reply

    async def repaired(
        self, first: ModelReply, bad: Unparsable, errors: int, findings: int
    ) -> tuple[ProposedPair, ...] | Unparsable:
        request = Template(_file("repair.md")).substitute(reason=bad.reason)
        second = _read(await self.ask(repair_turns(first.text, request)), errors, findings)
        if isinstance(second, Unparsable):
            return Unparsable(f"{bad.reason}; after the repair call: {second.reason}")
        return second

    def _request(self, turns: tuple[Turn, ...]) -> ModelRequest:
        left_out = self.matcher.capabilities.left_out
        return ModelRequest(
            prompt=self.prompt,
            form=self.matcher.capabilities.forms[0],
            schema=pairs_schema(),
            parameters={name: value for name, value in self.matcher.parameters.items() if name not in left_out},
            turns=turns,
        )

    def call(self) -> Call:
        parameters: dict[str, Json] = {**self.matcher.parameters, "form": self.matcher.capabilities.forms[0]}
        call = call_of(self.matcher.model, parameters, self.prompt, self.replies, self.failed_calls)
        is_free = not self.replies and not self.perhaps_paid  # the provider refused every call
        return replace(call, cost_usd=0.0) if is_free else call

    def failure(self, rubric: str, trace_id: str, state: FailureState, reason: str) -> Failure:
        return Failure(rubric=rubric, trace_id=trace_id, state=state, reason=reason, call=self.call())


def _read(reply: ModelReply, errors: int, findings: int) -> tuple[ProposedPair, ...] | Unparsable:
    bad = unusable(reply)
    return read_pairs(reply.text, errors, findings) if bad is None else bad


def _one_to_one(
    statements: Sequence[ProposedPair], errors: Sequence[ErrorLabel], findings: Sequence[Candidate], author: str
) -> Iterable[Match]:
    weights = np.zeros((len(errors), len(findings)))
    by_place = {(one.error, one.finding): one for one in statements if one.confidence >= LEAST}
    for place, one in by_place.items():
        weights[place] = one.confidence
    for place in assign(weights, least=LEAST):
        error, finding, one = errors[place[0]], findings[place[1]], by_place[place]
        yield Match(
            label_id=error.label_id,
            finding_id=finding.finding_id,
            status="proposed",
            author=author,
            confidence=round(one.confidence, 2),
            reasons=(one.reason,),
            localized=is_localized(error, finding.finding),
        )


def _proposed_pair(item: Any, number: int, errors: int, findings: int) -> ProposedPair | Unparsable:
    if not isinstance(item, dict) or set(item) != {"error", "finding", "confidence", "reason"}:
        return Unparsable(f"pair {number} must have 'error', 'finding', 'confidence' and 'reason', and nothing else")
    error, finding = _position(item["error"], "E", errors), _position(item["finding"], "F", findings)
    if error is None:
        return Unparsable(f"pair {number} names the error {str(item['error'])[:40]!r}, which is not in the list")
    if finding is None:
        return Unparsable(f"pair {number} names the finding {str(item['finding'])[:40]!r}, which is not in the list")
    sure = item["confidence"]
    if isinstance(sure, bool) or not isinstance(sure, (int, float)) or not math.isfinite(sure) or not 0 <= sure <= 1:
        return Unparsable(f"the confidence of pair {number} must be a number from 0 to 1, not {str(sure)[:40]!r}")
    if not isinstance(item["reason"], str):
        return Unparsable(f"the reason of pair {number} must be text")
    return ProposedPair(error=error, finding=finding, confidence=float(sure), reason=item["reason"].strip())


def _position(name: Any, letter: str, count: int) -> int | None:
    known = {f"{letter}{number}": number - 1 for number in range(1, count + 1)}
    return known.get(name) if isinstance(name, str) else None


def _error_block(name: str, error: ErrorLabel, parents: Mapping[str, str | None]) -> str:
    quotes = [piece.quote for piece in error.evidence]
    return _block(name, error.description, quotes, error.span_ids, error.dimensions, error.category, parents)


def _finding_block(name: str, candidate: Candidate, parents: Mapping[str, str | None]) -> str:
    finding = candidate.finding
    spans = [citation.span_id for citation in finding.citations if citation.span_id is not None]
    quotes = [finding.evidence] if finding.evidence else []
    return _block(name, finding.description, quotes, spans, sorted(candidate.dimensions), finding.category, parents)


def _block(
    name: str,
    description: str,
    quotes: Iterable[str],
    spans: Iterable[str],
    dimensions: Iterable[str],
    category: str | None,
    parents: Mapping[str, str | None],
) -> str:
    where = [f"{span} (in {parents[span]})" if parents.get(span) else span for span in dict.fromkeys(spans)]
    lines = [
        f"{name}: {description.strip() or '(no description)'}",
        f"  spans: {', '.join(where) or 'none'}",
        f"  dimensions: {', '.join(dimensions) or 'none'}",
        *([] if category is None else [f"  category: {category}"]),
        *(f"  quote: {_cut(quote)}" for quote in quotes if quote.strip()),
    ]
    return "\n".join(lines)


def _cut(quote: str) -> str:
    more = len(quote) - _QUOTED
    return quote if more <= 0 else f"{quote[:_QUOTED]} … {more:,} characters omitted"


@cache
def _file(name: str) -> str:
    return resources.files("tracejury.judging.matching").joinpath("match_prompts", name).read_text(encoding="utf-8")
