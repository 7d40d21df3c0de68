"""The strict reader of a judge's answer: JSON or the text template, one score of 0 to 3, or no verdict at all.

Strict about the verdict and lenient about its wrapping (thoughts, prose around one object, full-width digits).
Never looks for a number in prose. What is ambiguous, cut off or contradicts itself is `Unparsable`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tracejury.judging.judges.citations import cites_in_field, cites_in_prose
from tracejury.judging.judges.rubric import Rubric
from tracejury.judging.judges.wrapping import (
    JsonObject,
    Unwrapped,
    json_objects,
    plain,
    plain_structure,
    plain_with_places,
    text_of_parts,
    unwrap,
    with_calls_opened,
)
from tracejury.judging.records import IMPACTS, SCORES, Impact

Form = Literal["json", "tool", "template"]
"""How the answer is asked for: JSON by schema, the arguments of a tool call, or the text template."""

_REASONING = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```\Z", re.DOTALL)
_HEADING = re.compile(
    r"(?im)^[ \t]{0,3}(?P<hash>\#{1,6}[ \t]+)?(?:[-*][ \t]+)?(?:\*\*|__)?[ \t]*"
    r"(?P<name>criteria|supporting evidence|rationale|findings|not applicable|score)"
    r"[ \t]*(?:\*\*|__)?[ \t]*(?::[ \t]*(?:\*\*|__)?|(?(hash)$|(?!)))"
)
_SCORE = re.compile(
    r"(?:\*\*|__)?[ \t]*\[?(?P<score>[0-3])\]?[ \t]*(?:\*\*|__)?"
    r"[ \t]*(?:/[ \t]*3|out of 3|\([^()\d]*0[ \t]*(?:to|-|–|\.\.)[ \t]*3[^()\d]*\)|\([^()\d]*\))?"
    r"[ \t]*(?:\*\*|__)?\.?",
    re.ASCII | re.IGNORECASE,
)
_FINDING_LINE = re.compile(r"^[ \t]*[-*][ \t]+(.+\|.+)$")
_NOTHING = frozenset({"", "none", "none.", "no errors", "no errors.", "-"})
_KEYS = ("criteria", "rationale", "findings", "score", "not_applicable")
WHOLE_EVIDENCE = "finding_from_prose: the supporting evidence is taken as one finding"


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedFinding:
    """A finding as the judge wrote it: citations not yet resolved."""

    description: str
    evidence: str
    citations: tuple[str, ...]
    impact: Impact | None = None
    category: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedReply:
    """A readable answer. Exactly one of `score` and `not_applicable` is given, neither by a rubric of errors."""

    criteria: str
    rationale: str
    findings: tuple[ParsedFinding, ...]
    score: int | None = None
    not_applicable: str | None = None
    notes: tuple[str, ...] = ()
    reasoning: str | None = None
    """What stood beside the answer: the judge's thoughts, the prose around its JSON."""


@dataclass(frozen=True, slots=True)
class Unparsable:
    """No verdict; `reason` says what was wrong, for the repair call and for the reader of the failure."""

    reason: str


class _BadReplyError(Exception):
    """Raised inside the reader only; `read_reply` turns it into `Unparsable`."""


def read_reply(text: str, rubric: Rubric) -> ParsedReply | Unparsable:
    """The verdict in `text`: one JSON object or the template, alone or wrapped in what is no verdict."""
    body = _bare(text)
    try:
        return replace(_strict(body, rubric), reasoning=_leading_thoughts(text))
    except _BadReplyError as bad:
        try:
            return _wrapped(text, rubric, bad)
        except _BadReplyError as still_bad:
            return Unparsable(str(still_bad))


def _strict(body: str, rubric: Rubric) -> ParsedReply:
    if not body:
        raise _BadReplyError("the reply is empty")
    if body.startswith(("{", "[")):
        return _checked(_from_json(body, rubric), rubric)
    return _checked(_from_template(body, rubric), rubric)


def _wrapped(text: str, rubric: Rubric, bad: _BadReplyError) -> ParsedReply:
    """The verdict among thoughts, tokens and prose. Raises what was wrong with the bare text where there is none."""
    unwrapped = unwrap(_text_of_listed_parts(text))
    opened = with_calls_opened(unwrapped.answer)
    if opened != unwrapped.answer:
        inner = unwrap(opened)
        thoughts = "\n\n".join(filter(None, (unwrapped.thoughts, inner.thoughts)))
        unwrapped = Unwrapped(answer=inner.answer, thoughts=thoughts or None)
    body = _only_verdict(_bare(unwrapped.answer))
    if not body and unwrapped.thoughts is not None:
        raise _BadReplyError("the reply contains thoughts but no answer")
    is_template = _begins_as_template(_bare(text)) and not body.startswith("{")
    if is_template and unwrapped.thoughts is not None:
        raise bad  # a tag that a template quotes ends no thoughts
    if body != _bare(text):
        try:
            return replace(_strict(body, rubric), reasoning=unwrapped.thoughts)
        except _BadReplyError as still_bad:
            bad = still_bad
    if is_template:
        raise bad  # an object that a template quotes is no answer
    reply, prose = _one_object(plain_structure(body), rubric, bad)
    return replace(reply, reasoning="\n\n".join(filter(None, (unwrapped.thoughts, prose))) or None)


def _leading_thoughts(text: str) -> str | None:
    """The blocks of reasoning before an answer that could be read; None without one."""
    return unwrap(text).thoughts if _REASONING.match(text.lstrip("\ufeff")) is not None else None


def _begins_as_template(body: str) -> bool:
    return _HEADING.match(plain(body)) is not None


def _text_of_listed_parts(text: str) -> str:
    """The text of a content list, or of a JSON text, that came as text; any other text as it is."""
    if not text.lstrip().startswith(("[", '"')):
        return text
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(parts, str):
        return parts
    are_parts = isinstance(parts, list) and parts and all(isinstance(one, dict) and _PART & one.keys() for one in parts)
    return (text_of_parts(parts)[0] if are_parts else "") or text


_PART = frozenset({"type", "text"})
_HOLDER = re.compile(
    r'\{\s*"(?:verdict|judge?ment|evaluation|answer|final_answer|response|result|output)"\s*:\s*(\{.*\}|"\{.*\}")\s*\}',
    re.DOTALL,
)
"""An object that holds nothing but the verdict, under a name that says so."""


def _only_verdict(body: str) -> str:
    """The verdict in an object that holds nothing else; any other body as it is."""
    match = _HOLDER.fullmatch(body)
    if match is None:
        return body
    inner = match[1]
    try:
        held = json.loads(inner, strict=False)
        held = json.loads(inner := held, strict=False) if isinstance(held, str) else held
    except (ValueError, RecursionError):
        return body
    return inner if isinstance(held, dict) and {"score", "findings"} & {plain(key) for key in held} else body


def read_object(text: str) -> dict[str, Any] | Unparsable:
    """The one JSON object that `text` must be (bare or fenced), and nothing else."""
    try:
        return _load(_bare(text))
    except _BadReplyError as bad:
        return Unparsable(str(bad))


def reply_schema(rubric: Rubric) -> dict[str, Any]:
    """JSON schema of the answer: the same for all scoring rubrics, since providers cache it before the prompt."""
    properties: dict[str, Any] = {
        "criteria": {"type": "string"},
        "rationale": {"type": "string"},
        "findings": {"type": "array", "items": _finding_schema(rubric)},
    }
    if rubric.answer == "score":
        properties["score"] = {"anyOf": [{"type": "integer", "enum": list(SCORES)}, {"type": "null"}]}
        properties["not_applicable"] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    return _closed_object(properties)


def _finding_schema(rubric: Rubric) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "description": {"type": "string"},
        "evidence": {"type": "string"},
        "citations": {"type": "array", "items": {"type": "string"}},
        "impact": {"type": "string", "enum": list(IMPACTS)},
    }
    if rubric.categories:
        properties["category"] = {"type": "string", "enum": list(rubric.categories)}
    return _closed_object(properties)


def _closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _bare(text: str) -> str:
    """The reply without byte order mark, leading reasoning blocks and one fence around the whole."""
    body = text.lstrip("\ufeff").replace("\r\n", "\n")
    while (block := _REASONING.match(body)) is not None:
        body = body[block.end() :]
    body = body.strip()
    fenced = _FENCE.match(body)
    return body if fenced is None else fenced[1].strip()


def _checked(reply: ParsedReply, rubric: Rubric) -> ParsedReply:
    if rubric.answer == "errors":
        return reply
    if reply.score is None and reply.not_applicable is None:
        raise _BadReplyError("neither a score nor a reason why none applies")
    if reply.score is not None and reply.not_applicable is not None:
        raise _BadReplyError("both a score and 'not applicable'")
    if reply.not_applicable is not None and rubric.not_applicable is None:
        raise _BadReplyError(f"'not applicable' is not an answer for {rubric.key}")
    return reply


# JSON ---------------------------------------------------------------------------------------------------------


def _from_json(body: str, rubric: Rubric) -> ParsedReply:
    content = _load(body)
    _refuse_second_scores(content)
    raw = content.get("findings")
    if not isinstance(raw, list):
        raise _BadReplyError("'findings' must be a list, empty if there is nothing to report")
    notes: list[str] = []
    findings = tuple(_json_finding(item, number, rubric, notes) for number, item in enumerate(raw))
    scoring = rubric.answer == "score"
    return ParsedReply(
        criteria=_string(content, "criteria"),
        rationale=_string(content, "rationale"),
        findings=findings,
        score=_json_score(content.get("score")) if scoring else None,
        not_applicable=_reason(content.get("not_applicable")) if scoring else None,
        notes=tuple(notes),
    )


def _load(body: str) -> dict[str, Any]:
    try:
        content = json.loads(body, object_pairs_hook=_no_duplicates, parse_constant=_no_constant, strict=False)
    except (ValueError, RecursionError) as error:
        raise _BadReplyError(f"not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise _BadReplyError("the JSON is not an object")
    return content


def _no_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = {plain(key): value for key, value in pairs}
    if len(content) != len(pairs):
        raise _BadReplyError("an object has one key twice")
    return content


def _no_constant(name: str) -> None:
    raise _BadReplyError(f"{name} is not a JSON value")


def _refuse_second_scores(content: Mapping[str, Any]) -> None:
    others = [key for key in content if key not in _KEYS and "score" in key.lower()]
    if others:
        raise _BadReplyError(f"more than one score: {others[0]!r}")


def _json_score(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int or value not in SCORES:
        raise _BadReplyError(f"the score must be one of the integers 0, 1, 2, 3, not {_short(value)}")
    return value


def _reason(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise _BadReplyError(f"'not_applicable' must be a reason as text, or null, not {_short(value)}")
    return value.strip()


def _string(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key, "")
    if not isinstance(value, str):
        raise _BadReplyError(f"{key!r} must be text, not {_short(value)}")
    return value


def _json_finding(item: Any, number: int, rubric: Rubric, notes: list[str]) -> ParsedFinding:
    if not isinstance(item, dict):
        raise _BadReplyError(f"finding {number + 1} is not an object")
    citations = item.get("citations")
    if not isinstance(citations, list) or not all(isinstance(cite, str) for cite in citations):
        raise _BadReplyError(f"'citations' of finding {number + 1} must be a list of span names as text")
    description = _string(item, "description").strip()
    if not description:
        raise _BadReplyError(f"finding {number + 1} has no description")
    return ParsedFinding(
        description=description,
        evidence=_string(item, "evidence"),
        citations=tuple(citations),
        impact=_impact(item.get("impact"), notes),
        category=_category(item.get("category"), rubric, notes),
    )


def _impact(value: Any, notes: list[str]) -> Impact | None:
    if value is None:
        return None
    for impact in IMPACTS:
        if isinstance(value, str) and value.strip().lower() == impact:
            return impact
    notes.append(f"unknown_impact: {_short(value)} is left out")
    return None


def _category(value: Any, rubric: Rubric, notes: list[str]) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        raise _BadReplyError(f"a category must be text, not {_short(value)}")
    written = value.strip()
    for category in rubric.categories:
        if _folded(category) == _folded(written):
            return category
    if rubric.categories:
        notes.append(f"unknown_category: {_short(written)} is kept as written")
    return written


def _folded(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).lower()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


# JSON in prose -------------------------------------------------------------------------------------------------

_FENCE_MARK = re.compile(r"(?m)^[ \t]*(?:```|~~~)[\w-]*[ \t]*$\n?")
_SCALE = re.compile(r"\b0[ \t]*(?:to|-|–|—|\.\.|/|through)[ \t]*3\b", re.IGNORECASE)
_NUMBER_SAID = r"[\s*_:=(\[]*(?P<{0}>\d+(?:[.,]\d+)?)"
_SCORE_IN_PROSE = re.compile(
    r"\b(?:score|rating|grade|verdict)\b[*_ \t]*(?:[:=]|(?:is|was|stays|remains|becomes|must be|should be|would be)\b)"
    + _NUMBER_SAID.format("stated")
    + r"|\b(?:my|final|overall|total)[ \t]+(?:score|rating|grade|verdict)\b(?:[ \t]+(?:of|at))?"
    + _NUMBER_SAID.format("own")
    + r"|\b(?:rate|give|assign|award|grade|deserves?|settle on|go with)\b"
    + r"(?:[\s*_]+(?:it|this|the|an?|that|trace|run|agent|score|rating|of|as|at|with|on|for))*"
    + _NUMBER_SAID.format("given")
    + r"(?=[\s*_]*(?:/[ \t]*\d|out of|[.,;:!?)\]]|because|since|as|for|and|but|$))",
    re.IGNORECASE,
)


def _one_object(body: str, rubric: Rubric, bad: _BadReplyError) -> tuple[ParsedReply, str]:
    """The one verdict among the JSON objects of a text, and the text around it.

    Raises `bad` where none is there, and says so where two differ or the text around it says otherwise.
    """
    objects = tuple(json_objects(body))
    claims = [one for one in objects if _claims_verdict(one.text)]
    if not claims:
        raise bad
    replies = [_checked(_from_json(one.text, rubric), rubric) for one in claims]
    if any(reply != replies[0] for reply in replies):
        raise _BadReplyError("two different verdicts in one reply")
    prose = _outside(body, objects)
    _refuse_contradiction(body[: claims[0].start], prose, replies[0], rubric)
    return replies[0], _FENCE_MARK.sub("", _outside(body, claims)).strip()


def _claims_verdict(text: str) -> bool:
    """Whether a JSON object, or one in it, has a key that only a verdict has."""
    keys = {plain(key) for key in json.loads(text, strict=False)}
    return bool({"score", "findings", "not_applicable"} & keys) or '"score"' in plain(text)


def _outside(body: str, objects: Sequence[JsonObject]) -> str:
    places = [0, *(place for one in objects for place in (one.start, one.end)), len(body)]
    return "\n".join(body[start:end].strip() for start, end in zip(places[::2], places[1::2], strict=True))


def _refuse_contradiction(before: str, prose: str, reply: ParsedReply, rubric: Rubric) -> None:
    """Raise where the text around a verdict holds a piece of another: an open brace, a key, a score, a "no plan"."""
    if before.count("{") != before.count("}") or re.search(r'"score"\s*:', prose):
        raise _BadReplyError("a second verdict beside the JSON, cut off or not valid")
    for mark in _SCORE_IN_PROSE.finditer(_SCALE.sub("", plain(prose))) if rubric.answer == "score" else ():
        if mark[mark.lastgroup or 0] != str(reply.score):
            raise _BadReplyError(f"the text beside the JSON names another score: {_short(mark[0])}")
    if reply.score is not None and any(_normal(p) in _normal(prose) for p in rubric.not_applicable_phrases):
        raise _BadReplyError("the text beside the JSON says 'not applicable'")


# The text template ---------------------------------------------------------------------------------------------


def _from_template(body: str, rubric: Rubric) -> ParsedReply:
    phrase = _not_applicable_phrase(body, rubric)
    sections = _sections(body, may_begin_with_text=phrase)
    if not sections:
        if phrase and any(_claims_verdict(one.text) for one in json_objects(body)):
            raise _BadReplyError("both a verdict as JSON and 'not applicable'")
        if phrase:
            return ParsedReply(criteria="", rationale=body, findings=(), not_applicable=body)
        raise _BadReplyError("neither JSON nor the template's sections")
    if phrase and "score" in sections:
        raise _BadReplyError("both a score and 'not applicable'")
    rationale = "\n".join(filter(None, (sections.get("supporting evidence"), sections.get("rationale")))).strip()
    score = _template_score(sections["score"]) if "score" in sections and rubric.answer == "score" else None
    if score is not None and _is_phrase(rationale, rubric):
        raise _BadReplyError("both a score and 'not applicable'")
    notes: list[str] = []
    findings = _template_findings(sections, rationale, score, rubric, notes)
    return ParsedReply(
        criteria=sections.get("criteria", ""),
        rationale=rationale,
        findings=findings,
        score=score,
        not_applicable=body if phrase else _template_reason(sections, rationale, rubric),
        notes=tuple(notes),
    )


def _template_reason(sections: Mapping[str, str], rationale: str, rubric: Rubric) -> str | None:
    if "score" in sections:
        reason = sections.get("not applicable", "")
        return None if reason.strip().lower() in _NOTHING else reason
    if _is_phrase(rationale, rubric):
        return rationale
    return sections.get("not applicable") or None


def _sections(body: str, *, may_begin_with_text: bool) -> dict[str, str]:
    """Text by heading. The reply must begin with a heading; a second score is ambiguous, a second other is text."""
    marks: list[tuple[str, int, int]] = []
    folded, places = plain_with_places(body)
    for mark in _HEADING.finditer(folded):
        name = mark["name"].lower()
        if name == "score" and any(name == known for known, _, _ in marks):
            raise _BadReplyError("more than one score line")
        if all(name != known for known, _, _ in marks):
            marks.append((name, places[mark.start()], places[mark.end()]))
    if not marks:
        return {}
    if plain(body[: marks[0][1]]).strip() and not may_begin_with_text:
        raise _BadReplyError("text before the template's first section")
    ends = [start for _, start, _ in marks[1:]] + [len(body)]
    return {name: body[start:end].strip() for (name, _, start), end in zip(marks, ends, strict=True)}


def _template_score(section: str) -> int:
    value = _SCORE.fullmatch(re.sub(r"\n\s*-{3,}\s*\Z", "", plain(section)).strip())
    if value is None:
        raise _BadReplyError(f"the score must be one of the integers 0, 1, 2, 3, not {_short(section)}")
    return int(value["score"])


def _not_applicable_phrase(body: str, rubric: Rubric) -> bool:
    """Whether the reply begins with the sentence by which the rubric lets a judge say that it does not apply."""
    return any(_normal(body).startswith(_normal(phrase)) for phrase in rubric.not_applicable_phrases)


def _is_phrase(text: str, rubric: Rubric) -> bool:
    return any(_normal(text) == _normal(phrase) for phrase in rubric.not_applicable_phrases)


def _normal(text: str) -> str:
    return re.sub(r"[\s\"'*_.`]+", " ", text).strip().lower()


def _template_findings(
    sections: Mapping[str, str], rationale: str, score: int | None, rubric: Rubric, notes: list[str]
) -> tuple[ParsedFinding, ...]:
    listed = sections.get("findings")
    lines = [m[1] for line in (listed or rationale).splitlines() if (m := _FINDING_LINE.match(line)) is not None]
    if lines:
        return tuple(_line_finding(line, rubric, notes) for line in lines)
    if listed is not None and listed.strip().lower() in _NOTHING:
        return ()
    if rubric.answer == "errors" or listed is not None:
        raise _BadReplyError("the findings are not in the form '- span | impact | description | quote', nor 'none'")
    if score is None or score == max(SCORES) or not rationale:
        return ()
    notes.append(WHOLE_EVIDENCE)
    return (ParsedFinding(description=rationale, evidence="", citations=cites_in_prose(rationale)),)


def _line_finding(line: str, rubric: Rubric, notes: list[str]) -> ParsedFinding:
    """`S12, S14 | high | description | "quote" | category`; what follows the description may be missing."""
    fields = [field.strip() for field in line.split("|")]
    if len(fields) < 3 or not fields[2]:
        raise _BadReplyError(f"a finding needs span, impact and description: {_short(line)}")
    quote = fields[3].strip('"“”') if len(fields) > 3 else ""
    return ParsedFinding(
        description=fields[2],
        evidence=quote,
        citations=cites_in_field(fields[0]),
        impact=_impact(fields[1] or None, notes),
        category=_category(fields[4] if len(fields) > 4 else None, rubric, notes),
    )
