"""TRAIL annotations, and judges' answers in the same form, as rows: errors on spans and scores of a trace.

Annotations are people's work: what is malformed is mended with a warning. A judge's answer is evidence: it is
read strictly, and one that is broken or cut off is a failure with its text kept, never half an answer.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Literal, cast

import json5
from rapidfuzz import fuzz, process

from tracejury.ingest.parse import clean_text, json_text, parse_document
from tracejury.ingest.readers import open_inputs
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected
from tracejury.ingest.words import counted

CATEGORIES = (
    "Language-only", "Tool-related",
    "Poor Information Retrieval", "Incorrect Memory Usage", "Tool Output Misinterpretation",
    "Incorrect Problem Identification", "Tool Selection Errors",
    "Formatting Errors", "Instruction Non-compliance",
    "Tool Definition Issues", "Environment Setup Errors",
    "Rate Limiting", "Authentication Errors", "Service Errors", "Resource Not Found",
    "Resource Exhaustion", "Timeout Issues",
    "Context Handling Failures", "Resource Abuse",
    "Goal Deviation", "Task Orchestration",
)  # fmt: skip
"""TRAIL's leaves: 20 of its prompt, and "Incorrect Memory Usage", which only its scorer and some labels have."""
SCORE_NAMES = ("reliability", "security", "instruction_adherence", "plan_opt", "overall")
Impact = Literal["low", "medium", "high"]
ReplyState = Literal["unparsable", "too_long", "refused", "error"]

_ERROR_KEYS = ("category", "location", "evidence", "description", "impact")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")
_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}")
_GENERIC = re.compile(r"\b(?:errors?|failures?|issues?)\s*$")
_MOST_FUZZY = 200_000
_SPELLING = 90
"""Similarity (0 to 100) from which a spelling is taken for a category: one letter of ten may differ."""
_MARKERS: tuple[tuple[str, ReplyState, str], ...] = (
    ("context window exceeded", "too_long", "the trace was longer than the judge's context window"),
    ("error processing file", "error", "the call to the judge failed"),
    ("no output produced", "unparsable", "the judge gave no output"),
)
_REFUSAL = re.compile(
    r"(?i)\bI(?:'m| am)?\s*(?:sorry|can(?:'|no)t (?:assist|help|comply)|unable to (?:assist|help|comply))"
)
_FENCE = re.compile(r"^```[A-Za-z0-9]*[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnnotatedError:
    """One error of a trace. `category` is one of `CATEGORIES`, None where `category_raw` is none of them.

    `location` is as written; `span_ids` are the ids in it (several when it lists several). `index` counts the
    errors of the file from 0. Whether the spans exist is not checked here.
    """

    trace_id: str
    index: int
    category: str | None
    category_raw: str
    location: str | None
    span_ids: tuple[str, ...]
    evidence: str
    description: str
    impact: Impact | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class AnnotatedScore:
    """One score of a trace, 1 to 5 by TRAIL's scale; `name` is one of `SCORE_NAMES`. None: not given, never 0."""

    trace_id: str
    name: str
    score: float | None
    reasoning: str | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Annotation:
    """What one file says of one trace; `warnings` tell what was mended in it."""

    trace_id: str
    file: str
    errors: tuple[AnnotatedError, ...]
    scores: tuple[AnnotatedScore, ...]
    warnings: tuple[str, ...] = ()

    @property
    def all_warnings(self) -> tuple[str, ...]:
        rows: tuple[AnnotatedError | AnnotatedScore, ...] = (*self.errors, *self.scores)
        return (*self.warnings, *(warning for row in rows for warning in row.warnings))


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeReply:
    """A judge's answer that could be read whole; `raw` is its text."""

    trace_id: str
    file: str
    errors: tuple[AnnotatedError, ...]
    scores: tuple[AnnotatedScore, ...]
    raw: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FailedReply:
    """A judge's answer that is none: `state` and `reason` say why, `raw` is its text."""

    trace_id: str
    file: str
    state: ReplyState
    reason: str
    raw: str


def read_annotations(path: Path | str) -> Iterator[Annotation | Rejected]:
    """Every TRAIL annotation under `path`: files, folders, globs, archives, and the hub's parquet files.

    Trailing commas, misplaced keys, a missing trace id and off spellings are mended with a warning. An error
    that cannot be mended is rejected by file and place, and the others of the file stay.
    """
    for name, data in open_inputs(path):
        if isinstance(data, IngestError):
            yield rejected(name, data)
            continue
        try:
            parts = _from_parquet(name, data) if data.startswith(b"PAR1") else [(name, _stem(name), data)]
            for file, trace_id, text in parts:
                yield from read_annotation(text, file=file, trace_id=trace_id)
        except IngestError as error:
            yield rejected(name, error)


def read_annotation(data: bytes, *, file: str, trace_id: str | None = None) -> Iterator[Annotation | Rejected]:
    """The annotation in `data`; `trace_id` is used where it names none."""
    try:
        value, warnings = _repaired_json(data)
        if not isinstance(value, dict) or not ({"errors", "scores"} & value.keys()):
            raise IngestError("not a TRAIL annotation", remedy="it is an object with trace_id, errors and scores")
        own, id_warnings = _trace_id(value, trace_id)
    except IngestError as error:
        yield rejected(file, error)
        return
    errors, bad = _errors(value.get("errors"), own, file)
    yield from bad
    scores, score_warnings = _scores(value.get("scores"), own)
    yield Annotation(
        trace_id=own,
        file=file,
        errors=errors,
        scores=scores,
        warnings=(*warnings, *id_warnings, *score_warnings, *_others(value, {"trace_id", "errors", "scores"})),
    )


def read_replies(path: Path | str) -> Iterator[JudgeReply | FailedReply | Rejected]:
    """Every judge's answer in TRAIL's form under `path`, one a file that is named after its trace."""
    for name, data in open_inputs(path):
        if isinstance(data, IngestError):
            yield rejected(name, data)
        else:
            yield read_reply(data.decode("utf-8", "replace"), file=name, trace_id=_stem(name) or PurePath(name).stem)


def read_reply(text: str, *, file: str, trace_id: str) -> JudgeReply | FailedReply:
    """The answer that `text` holds whole: alone, in a fence or after the judge's thoughts; else a failure.

    Of several whole answers the last counts. A text that is cut off within its answer is a failure.
    """
    raw = clean_text(text)
    marked = _marked(raw)
    if marked is not None:
        return FailedReply(trace_id=trace_id, file=file, state=marked[0], reason=marked[1], raw=raw)
    try:
        value, warnings = _whole_answer(text)
        errors, bad = _errors(value.get("errors"), trace_id, file)
        if bad:
            raise IngestError(f"{bad[0].place}: {bad[0].reason}")
    except IngestError as error:
        state: ReplyState = "refused" if _REFUSAL.search(raw[:400]) and "{" not in raw else "unparsable"
        reason = error.reason + (f" ({error.place})" if error.place else "")
        return FailedReply(trace_id=trace_id, file=file, state=state, reason=reason, raw=raw)
    scores, score_warnings = _scores(value.get("scores"), trace_id)
    return JudgeReply(
        trace_id=trace_id, file=file, errors=errors, scores=scores, raw=raw, warnings=(*warnings, *score_warnings)
    )


@lru_cache(maxsize=4096)
def normal_category(raw: str) -> str | None:
    """The category that a spelling means: case, hyphens, plurals and one wrong letter in ten do not matter."""
    exact = raw.strip()
    if exact in CATEGORIES:
        return exact
    for text in (exact, *reversed(re.split(r"[>:/()|]", exact))):
        folded = _folded(text)
        if folded in _FOLDED:
            return _FOLDED[folded]
    folded = _folded(exact)
    if len(folded) < 8:
        return None
    best = process.extractOne(folded, list(_FOLDED), scorer=fuzz.ratio, score_cutoff=_SPELLING)
    return None if best is None else _FOLDED[best[0]]


def _folded(text: str) -> str:
    return re.sub(r"[^a-z]", "", _GENERIC.sub("", text.lower().strip()))


_FOLDED = {_folded(category): category for category in CATEGORIES}


def _stem(name: str) -> str | None:
    """The trace id that a file name gives: 32 hex digits, or else its stem."""
    stem = PurePath(name).name.split(".", 1)[0]
    match = _TRACE_ID.search(stem)
    return match.group().lower() if match else stem or None


def _repaired_json(data: bytes) -> tuple[Json, tuple[str, ...]]:
    try:
        document = parse_document(data)
        return document.value, document.warnings
    except IngestError as error:
        text = data.decode("utf-8", "replace")
        where = error.place or "the file"
        for repair in (_without_trailing_commas, _as_json5):
            try:
                document = parse_document(repair(text).encode())
            except (IngestError, ValueError, RecursionError):
                continue
            return document.value, (f"repaired_json: {error.reason} ({where}); repaired", *document.warnings)
        raise


def _without_trailing_commas(text: str) -> str:
    return re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda match: match[1] or "", text, flags=re.DOTALL)


def _as_json5(text: str) -> str:
    if len(text) > _MOST_FUZZY:
        raise ValueError("too long to be repaired")
    return json.dumps(json5.loads(text))


def _trace_id(value: dict[str, Json], known: str | None) -> tuple[str, tuple[str, ...]]:
    own = value.get("trace_id")
    if isinstance(own, str) and own.strip():
        return own.strip(), ()
    if known is None:
        raise IngestError("names no trace", place="trace_id", remedy="name the file after its trace")
    return known, (f"no_trace_id: taken from the file name: {known}",)


def _others(value: dict[str, Json], known: set[str]) -> tuple[str, ...]:
    return tuple(f"unknown_key: {key!r:.60} is not read" for key in value.keys() - known)


def _errors(value: Json, trace_id: str, file: str) -> tuple[tuple[AnnotatedError, ...], list[Rejected]]:
    if value is None:
        return (), []
    if not isinstance(value, list):
        bad = Rejected(
            file=file, place="errors", reason=f"'errors' is {type(value).__name__}, not a list", remedy="write a list"
        )
        return (), [bad]
    errors, rejects = [], []
    for index, item in enumerate(value):
        if isinstance(item, dict):
            errors.append(_error(item, trace_id, index))
        else:
            rejects.append(
                Rejected(
                    file=file,
                    place=f"errors[{index}]",
                    reason=f"{json_text(item)[:60]} is not an object",
                    remedy="write category, location, evidence, description and impact",
                )
            )
    return tuple(errors), rejects


def _error(item: dict[str, Json], trace_id: str, index: int) -> AnnotatedError:
    warnings: list[str] = []
    fields = {key: _field(item, key, warnings) for key in _ERROR_KEYS}
    _take_misplaced(item, fields, warnings)
    raw = fields["category"] or ""
    category = normal_category(raw)
    if category is None:
        warnings.append(f"unknown_category: {raw!r} is none of TRAIL's {len(CATEGORIES)}; kept as written")
    elif category != raw:
        warnings.append(f"category_spelling: {raw!r} read as {category!r}")
    location = fields["location"]
    span_ids = tuple(dict.fromkeys(_SPAN_ID.findall((location or "").lower())))
    if not span_ids:
        warnings.append(f"dead_location: {location!r} names no span; kept as written")
    return AnnotatedError(
        trace_id=trace_id,
        index=index,
        category=category,
        category_raw=raw,
        location=location,
        span_ids=span_ids,
        evidence=fields["evidence"] or "",
        description=fields["description"] or "",
        impact=_impact(fields["impact"], warnings),
        warnings=tuple(warnings),
    )


def _field(item: dict[str, Json], key: str, warnings: list[str]) -> str | None:
    if key not in item or item[key] is None:
        if key in ("category", "evidence", "impact"):
            warnings.append(f"missing_key: the error has no {key!r}")
        return None
    value = item[key]
    if isinstance(value, str):
        return value
    warnings.append(f"retyped: {key} is {type(value).__name__}; kept as text")
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(cast("list[str]", value))
    return json_text(value)


def _take_misplaced(item: dict[str, Json], fields: dict[str, str | None], warnings: list[str]) -> None:
    """Keys that are pieces of a sentence (unescaped quotes split it) go into the description, or else the evidence."""
    strange = {key: value for key, value in item.items() if key not in _ERROR_KEYS}
    if not strange:
        if fields["description"] is None:
            warnings.append("missing_key: the error has no 'description'")
        return
    pieces = [
        f"{key}: {value if isinstance(value, str) else json_text(value)}" if value not in (None, "") else key
        for key, value in strange.items()
    ]
    target = "description" if fields["description"] is None else "evidence"
    fields[target] = "\n".join([*([fields[target] or ""] if fields[target] else []), *pieces])
    names = ", ".join(repr(key[:40]) for key in strange)
    warnings.append(f"misplaced_keys: {names} taken into the {target}")


def _impact(text: str | None, warnings: list[str]) -> Impact | None:
    low = (text or "").strip().lower()
    if low in ("low", "medium", "high"):
        return cast("Impact", low)
    if text is not None:
        warnings.append(f"unknown_impact: {text!r} is none of LOW, MEDIUM, HIGH; left empty")
    return None


def _scores(value: Json, trace_id: str) -> tuple[tuple[AnnotatedScore, ...], tuple[str, ...]]:
    """TRAIL's five scores from a list of one object, or from the bare object."""
    warnings: list[str] = []
    if isinstance(value, list):
        if len(value) > 1:
            warnings.append(f"several_scores: {len(value)} score objects; the first is read")
        value = value[0] if value else None
    elif isinstance(value, dict):
        warnings.append("scores_not_listed: scores is an object, not a list")
    if value is None:
        return (), tuple(warnings)
    if not isinstance(value, dict):
        return (), (*warnings, f"retyped: scores holds {json_text(value)[:60]}")
    rows = []
    known = set()
    for name in SCORE_NAMES:
        key, reason_key = (
            ("overall", "overall_reasoning") if name == "overall" else (f"{name}_score", f"{name}_reasoning")
        )
        known |= {key, reason_key}
        if key in value or reason_key in value:
            rows.append(_score(value.get(key), value.get(reason_key), trace_id, name))
    warnings.extend(f"unknown_key: scores.{key:.60} is not read" for key in value.keys() - known)
    return tuple(rows), tuple(warnings)


def _score(value: Json, reasoning: Json, trace_id: str, name: str) -> AnnotatedScore:
    warnings = []
    score: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        score = float(value)
    elif isinstance(value, str):
        try:
            score = float(value)
            warnings.append(f"retyped: {name} is the text {value!r:.40}")
        except ValueError:
            warnings.append(f"unreadable_score: {name} is {value!r:.40}")
    elif value is not None:
        warnings.append(f"unreadable_score: {name} is {json_text(value)[:40]}")
    if score is not None and not 1 <= score <= 5:
        warnings.append(f"score_out_of_range: {name} is {score:g}, TRAIL's scale is 1 to 5")
    text = reasoning if reasoning is None or isinstance(reasoning, str) else json_text(reasoning)
    return AnnotatedScore(trace_id=trace_id, name=name, score=score, reasoning=text, warnings=tuple(warnings))


def _marked(text: str) -> tuple[ReplyState, str] | None:
    """What the harness wrote in place of an answer."""
    low = text.strip().lower()
    if not low:
        return "unparsable", "the file is empty"
    for start, state, reason in _MARKERS:
        if low.startswith(start) and "{" not in low:
            return state, reason
    return None


def _whole_answer(text: str) -> tuple[dict[str, Json], tuple[str, ...]]:
    """The last whole JSON object with `errors` or `scores`. Raises `IngestError` where there is none."""
    try:
        document = parse_document(text.encode("utf-8", "surrogatepass"))
    except IngestError as error:
        first = error
    else:
        value, wrapped = _unwrapped(document.value)
        if isinstance(value, dict) and isinstance(value.get("errors"), list):
            return value, (*document.warnings, *wrapped)
        raise IngestError("JSON without a list of errors")
    answers = [*_fenced(text), *_bare(text)] if "{" in text else []
    if not answers:
        if "{" not in text:
            raise IngestError("no JSON in the answer")
        at_end = text.rstrip().removesuffix("```").rstrip()[-1:] != "}"
        raise IngestError("the answer is cut off within its JSON" if at_end else first.reason, place=first.place)
    start, end, value = max(answers, key=lambda item: item[0])
    warnings = (
        [] if len({at for at, _, _ in answers}) == 1 else [f"several_answers: {len(answers)} answers; the last counts"]
    )
    if "{" in text[end:] and '"errors"' in text[end:]:
        raise IngestError("a second answer begins after the first and is cut off")
    around = text[:start].strip().removeprefix("```json").removeprefix("```").strip()
    if around:
        warnings.append(f"text_around: {counted(len(around), 'character')} before the answer, not read")
    return value, tuple(warnings)


def _unwrapped(value: Json) -> tuple[Json, tuple[str, ...]]:
    """The answer within a list of one, as TRAIL's published scorer reads it from its first brace on."""
    if isinstance(value, list) and len(value) == 1:
        return value[0], ("wrapped_answer: the answer is a list of one object",)
    return value, ()


_Answer = tuple[int, int, dict[str, Json]]


def _fenced(text: str) -> list[_Answer]:
    return [item for match in _FENCE.finditer(text) if (item := _answer_at(text, match.start(1))) is not None]


def _bare(text: str) -> list[_Answer]:
    """Whole answers that begin on a line of their own."""
    answers: list[_Answer] = []
    end = 0
    for match in re.finditer(r"^[ \t]*\{", text, re.MULTILINE):
        start = match.end() - 1
        if start < end:
            continue
        item = _answer_at(text, start)
        if item is not None:
            answers.append(item)
            end = item[1]
    return answers


def _answer_at(text: str, start: int) -> _Answer | None:
    start += len(text[start:]) - len(text[start:].lstrip())
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("errors"), list):
        return None
    cleaned = parse_document(json.dumps(value).encode()).value
    return start, end, cast("dict[str, Json]", cleaned)


def _from_parquet(name: str, data: bytes) -> Iterator[tuple[str, str | None, bytes]]:
    """The `labels` column of the hub's file; the trace id stands in the `trace` column beside it."""
    import pyarrow.parquet as pq  # pyarrow takes a second to import and few files are parquet

    try:
        table = pq.ParquetFile(io.BytesIO(data))
        if "labels" not in table.schema_arrow.names:
            raise IngestError("a parquet file without a column 'labels'", remedy="use the hub's TRAIL files")
        for number, batch in enumerate(table.iter_batches(batch_size=1, columns=["trace", "labels"])):
            trace, labels = batch.column(0)[0].as_py(), batch.column(1)[0].as_py()
            match = re.search(r'"trace_id"\s*:\s*"([^"]+)"', (trace or "")[:100_000])
            yield f"{name} row {number}", match[1] if match else None, (labels or "").encode("utf-8", "surrogatepass")
    except (OSError, ValueError) as error:
        raise IngestError(f"damaged parquet file: {error}", remedy="download it again") from error
