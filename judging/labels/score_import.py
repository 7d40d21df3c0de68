"""Scores and labels made elsewhere, as ours: people's as labels, evaluators' as verdicts, every refused row named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, cast
from uuid import NAMESPACE_URL, uuid5

from tracejury.ingest.labels import normal_category
from tracejury.ingest.opinion import FIELDS, FormName, Opinion, as_words, cell, column_of, folded, ids_of
from tracejury.ingest.parse import json_text
from tracejury.ingest.score_files import Record, RecordFile
from tracejury.ingest.score_forms import FORMS, SCORES_BY_NAME, form_of, read_plain
from tracejury.ingest.trace import Json, Rejected
from tracejury.ingest.words import counted
from tracejury.judging.judges.rubric import rubrics
from tracejury.judging.labels.exchange import Labels
from tracejury.judging.labels.scales import Scale, Value, plain_score, scale_of
from tracejury.judging.labels.spans_scored import dimension_and_spans, of_span
from tracejury.judging.records import (
    DIMENSIONS,
    IMPACTS,
    Call,
    Dimension,
    ErrorLabel,
    Evidence,
    Impact,
    Phase,
    Review,
    ScoreLabel,
    Verdict,
)
from tracejury.judging.taxonomy import dimensions_of

SPANS_ONLY = "the evaluator scored spans and not the trace"
_NO_ERROR = "submitted, no error"
_WHERE_AND_WHO = frozenset({"trace_id", "span_ids", "annotator"})
"""Fields whose columns may be named beside a tool's form, which reads the rest."""
_TRAIL = "trail."


class ScoreImportError(ValueError):
    """Options of an import that do not fit the file; the message says which and what to give instead."""


@dataclass(frozen=True, kw_only=True)
class TraceIndex:
    """What the workspace holds: its traces; by span id (lower case) the traces and ids of such spans; root spans."""

    traces: frozenset[str]
    spans: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    roots: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """How files are read: a form by name (else recognised), columns by field, scales; author and name of all rows."""

    form: FormName | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    scales: tuple[Scale, ...] = ()
    annotator: str | None = None
    dimension: str | None = None
    is_reviewed: bool = False


@dataclass(kw_only=True)
class Imported:
    """Labels of people, verdicts of evaluators by name, and the dimensions that are none of ours."""

    labels: Labels = field(default_factory=Labels)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    own_dimensions: set[str] = field(default_factory=set)


class _Row(NamedTuple):
    file: str
    opinion: Opinion


class _RefusedError(Exception):
    """Raised inside the import for a row that cannot be taken; it becomes a `Rejected` with the row's place."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


def opinions_of(file: RecordFile, options: ImportOptions) -> list[Opinion]:
    """What the records of a file say. Raises `ScoreImportError` for columns that the file does not have."""
    _check_columns(file, options.columns)
    read = _reader(file, options)
    return [_named(opinion, options) for record in file.records for opinion in read(record)]


def _named(opinion: Opinion, options: ImportOptions) -> Opinion:
    """A score without a name, under the one that was told for all."""
    is_nameless = opinion.kind == "score" and opinion.name is None
    return replace(opinion, name=options.dimension) if is_nameless else opinion


def span_ids_of(opinions: Iterable[Opinion]) -> set[str]:
    """Every span id that opinions name, as `TraceIndex.spans` keeps them."""
    return {_bare_id(span_id) for opinion in opinions for span_id in opinion.span_ids}


def import_opinions(
    files: Sequence[tuple[RecordFile, Sequence[Opinion]]], options: ImportOptions, index: TraceIndex
) -> Imported:
    """Labels and verdicts of files that were read. A row that cannot be taken is rejected by its place."""
    imported = Imported()
    for file, opinions in files:
        imported.labels.rejected += [
            Rejected(file=file.file, place=place, reason=reason, remedy="correct this row and import the file again")
            for place, reason in file.broken
        ]
        if unread := _unread_columns(file, options):
            imported.labels.warnings.append(
                f"{file.file}: {counted(len(unread), 'column')} not read: {', '.join(unread)}. "
                "Try: --columns FIELD=COLUMN, or a row for each score with its name under `dimension`"
            )
        imported.labels.warnings += _set_aside(file.file, opinions)
    rows = [_Row(file.file, opinion) for file, opinions in files for opinion in opinions if opinion.set_aside is None]
    foreign = _foreign_scales(rows, options)
    builder = _Builder(imported, options, index, foreign)
    for row in rows:
        builder.take(row)
    builder.finish()
    return imported


def _set_aside(file: str, opinions: Sequence[Opinion]) -> Iterator[str]:
    """A warning for each way in which annotators took answers back, with the places of all of them."""
    places: dict[str, list[str]] = {}
    for opinion in opinions:
        if opinion.set_aside is not None:
            places.setdefault(opinion.set_aside, []).append(opinion.place)
    for how, some in places.items():
        yield f"{file}: {counted(len(some), 'answer')} {how} in the tool, not imported: {', '.join(some)}"


def dimension_of(name: str) -> str:
    """The dimension that a name means by its code or title, in any spelling; any other name is an own dimension."""
    return _names().get(folded(name), name.strip())


@cache
def _names() -> Mapping[str, str]:
    known = {folded(dimension): dimension for dimension in DIMENSIONS}
    titles = {folded(one.title): one.key for one in rubrics().values() if one.key in DIMENSIONS}
    return {**titles, **known}


def _check_columns(file: RecordFile, columns: Mapping[str, str]) -> None:
    there = {name for record in file.records for name in record.values}
    for name, column in columns.items():
        if name not in FIELDS:
            raise ScoreImportError(f"--columns has no field {name!r}. Try: {', '.join(FIELDS)}")
        if column not in there and all(cell(record.values, column) is None for record in file.records):
            raise ScoreImportError(f"{file.file} has no column {column!r}. Try: one of {', '.join(sorted(there))}")


def _reader(file: RecordFile, options: ImportOptions) -> Callable[[Record], Iterable[Opinion]]:
    if options.form is not None and options.form != "plain":
        return next(form.read for form in FORMS if form.name == options.form)
    scored = _scored_columns(file) if file.records else {}

    def plain(record: Record) -> Iterable[Opinion]:
        return read_plain(record, options.columns, scored)

    def read(record: Record) -> Iterable[Opinion]:
        if "errors" in record.values and "scores" in record.values:
            fault = "a TRAIL annotation, which its file name ties to a trace"
            return [Opinion(place=record.place, fault=fault, remedy="import it with --as trail")]
        form = form_of(record.values)
        if form is None or not options.columns.keys() <= _WHERE_AND_WHO:
            return plain(record)
        return [_with_columns(opinion, record, options.columns) for opinion in form.read(record)]

    return plain if options.form == "plain" else read


def _with_columns(opinion: Opinion, record: Record, columns: Mapping[str, str]) -> Opinion:
    """An opinion of a tool's form with the trace, span and annotator from the columns that were named for them."""
    values = {name: cell(record.values, column) for name, column in columns.items()}
    return replace(
        opinion,
        trace_id=as_words(values.get("trace_id")) or opinion.trace_id,
        span_ids=ids_of(values.get("span_ids")) or opinion.span_ids,
        author=as_words(values.get("annotator")) or opinion.author,
    )


def _scored_columns(file: RecordFile) -> dict[str, str]:
    """Columns that are named after a dimension: a wide file has a column of scores for each."""
    names = {name: _names().get(folded(name)) for name in file.records[0].values}
    return {name: dimension for name, dimension in names.items() if dimension is not None}


def _foreign_scales(rows: Sequence[_Row], options: ImportOptions) -> dict[tuple[str, str], str]:
    """By file and name, a value that shows the name to be on another scale than 0..3, and where it stands.

    Of a scale of 1 to 5 the values 1 to 3 would pass for ours: then no row of the name is taken.
    """
    places: dict[tuple[str, str], str] = {}
    for file, opinion in rows:
        if opinion.kind != "score" or opinion.value is None or opinion.name is None or opinion.fault is not None:
            continue
        if opinion.name.startswith(_TRAIL) or _scale(opinion.name, options) is not None:
            continue
        if plain_score(opinion.value) is None:
            shown = f"{opinion.value:g}" if isinstance(opinion.value, float) else repr(opinion.value)
            places.setdefault((file, folded(opinion.name)), f"{shown} at {opinion.place}")
    return places


def _scale(name: str, options: ImportOptions) -> Scale | None:
    """The scale of a name; one for a dimension holds for each spelling of it."""
    same = [one for one in options.scales if one.name is not None and dimension_of(one.name) == dimension_of(name)]
    return same[0] if same else scale_of(name, options.scales)


_BOOKKEEPING = frozenset({
    "id", "annotation_id", "created_at", "updated_at", "timestamp", "date", "lead_time", "trace_name", "metadata",
})  # fmt: skip
"""Columns of tools' exports that hold no word on a trace, so that nothing is lost where they are not read."""


def _unread_columns(file: RecordFile, options: ImportOptions) -> list[str]:
    """The columns of a plain file that no field takes, in their order; a tool's own form is known as a whole."""
    is_plain = options.form == "plain" or not options.columns.keys() <= _WHERE_AND_WHO
    read: set[str] = {*_scored_columns(file), *SCORES_BY_NAME} if file.records else set()
    unread: dict[str, None] = {}
    for record in file.records:
        is_of_tool = options.form is not None or form_of(record.values) is not None or "errors" in record.values
        if not is_plain and is_of_tool:
            continue
        columns = {folded(name): name for name in reversed(list(record.values))}
        own = {column_of(name, columns, options.columns) for name in FIELDS} | read | _BOOKKEEPING
        unread.update(
            dict.fromkeys(name for name in record.values if name not in own and as_words(record.values[name]))
        )
    return list(unread)


class _Builder:
    """Takes rows one by one; knows what stood before, so that a second word on the same thing does not go unseen."""

    def __init__(
        self, imported: Imported, options: ImportOptions, index: TraceIndex, foreign: Mapping[tuple[str, str], str]
    ) -> None:
        self.imported, self.options, self.index, self.foreign = imported, options, index, foreign
        self.scores: dict[tuple[str, str, str, Phase], tuple[ScoreLabel, str]] = {}
        self.errors: dict[str, ErrorLabel] = {}
        self.reviews: dict[tuple[str, str], Review] = {}
        self.of_spans: dict[tuple[str, str, str], list[str]] = {}

    def take(self, row: _Row) -> None:
        try:
            self._take(row.file, row.opinion)
        except _RefusedError as refused:
            place = row.opinion.place
            self.imported.labels.rejected.append(
                Rejected(file=row.file, place=place, reason=refused.reason, remedy=refused.remedy)
            )

    def finish(self) -> None:
        labels = self.imported.labels
        labels.errors += self.errors.values()
        labels.scores += [score for score, _ in self.scores.values()]
        if self.options.is_reviewed:
            for annotator, trace_id in labels.places:
                review = Review(trace_id=trace_id, annotator=annotator, status="submitted")
                self.reviews.setdefault((annotator, trace_id), review)
        labels.reviews += self.reviews.values()
        of_spans = sum(bool(dimension_and_spans(score.dimension)[1]) for score in labels.scores)
        if of_spans:
            labels.warnings.append(
                f"{counted(of_spans, 'score')} of spans: kept with their spans, compared with no judge's score"
            )
        for (author, dimension, trace_id), lines in self.of_spans.items():
            verdict = _verdict(author, dimension, trace_id, None, "\n".join(lines), SPANS_ONLY)
            self.imported.verdicts.setdefault(author, []).append(verdict)

    def _take(self, file: str, opinion: Opinion) -> None:
        if opinion.fault is not None:
            raise _RefusedError(opinion.fault, opinion.remedy or "leave this row out")
        opinion = self._placed(opinion)
        author = self.options.annotator or opinion.author
        if author is None:
            raise _RefusedError("the row names no annotator", "give --annotator NAME, or --columns annotator=COLUMN")
        is_person = not opinion.is_machine or self.options.annotator is not None
        if opinion.kind == "review":
            self._review(opinion, author)
        elif opinion.kind == "error":
            self._error(opinion, author)
        elif is_person:
            self._score(file, opinion, author)
        else:
            self._verdict(file, opinion, author)

    def _placed(self, opinion: Opinion) -> Opinion:
        """The opinion with the ids that the workspace knows its trace and spans by; a root span is the trace."""
        spots = [spot for span_id in opinion.span_ids for spot in self.index.spans.get(_bare_id(span_id), ())]
        trace_id = None if opinion.trace_id is None else self._trace(opinion.trace_id)
        if trace_id is None:
            traces = sorted({trace for trace, _ in spots})
            if len(traces) != 1:
                where = "is in several traces" if traces else "is in no trace here"
                which = f"its span {opinion.span_ids[0]!r} {where}" if opinion.span_ids else "no trace"
                remedy = "ingest its trace first" if opinion.span_ids else "give --columns trace_id=COLUMN"
                raise _RefusedError(f"the row names no trace{'' if which == 'no trace' else ' and ' + which}", remedy)
            trace_id = traces[0]
        known = {_bare_id(span_id): span_id for trace, span_id in spots if trace == trace_id}
        spans = tuple(known.get(_bare_id(span_id), span_id) for span_id in opinion.span_ids)
        if opinion.kind == "score" and spans and all((trace_id, span_id) in self.index.roots for span_id in spans):
            spans = ()
        return replace(opinion, trace_id=trace_id, span_ids=spans)

    def _trace(self, trace_id: str) -> str:
        bare = _bare_id(trace_id)
        spellings = (trace_id, bare, bare.replace("-", ""), bare.removeprefix("tr-"))
        return next((one for one in spellings if one in self.index.traces), trace_id)

    def _review(self, opinion: Opinion, author: str) -> None:
        status = (opinion.status or "").strip().lower()
        no_error = status == _NO_ERROR
        if not no_error and status not in {"open", "submitted", "skipped"}:
            raise _RefusedError(
                f"the status {opinion.status!r} is unknown", f"use open, submitted, {_NO_ERROR!r} or skipped"
            )
        self.reviews[author, cast("str", opinion.trace_id)] = Review(
            trace_id=cast("str", opinion.trace_id),
            annotator=author,
            status="submitted" if no_error else cast("Any", status),
            no_error=no_error,
            reason=opinion.comment,
            guideline_version=opinion.guideline_version,
        )

    def _score(self, file: str, opinion: Opinion, author: str) -> None:
        name = self._dimension(opinion)
        value, original = self._on_our_scale(file, opinion)
        self._note_own(name)
        trace_id, phase = cast("str", opinion.trace_id), _phase(opinion)
        label = ScoreLabel(
            trace_id=trace_id,
            annotator=author,
            dimension=of_span(name, opinion.span_ids),
            value=value,
            not_applicable=opinion.not_applicable,
            note="\n".join(filter(None, (opinion.comment, original))),
            confidence=_confidence(opinion),
            phase=phase,
        )
        key = (author, trace_id, label.dimension, phase)
        before = self.scores.get(key)
        if before is not None and before[0] != label:
            raise _RefusedError(
                f"{author!r} scores {name} of trace {trace_id} twice with different scores; the first is at "
                f"{before[1]}",
                "keep one of the two rows, or give the annotators different names",
            )
        self.scores[key] = (label, opinion.place)

    def _dimension(self, opinion: Opinion) -> str:
        if opinion.name is None:
            raise _RefusedError("the row names no dimension", "give --columns dimension=COLUMN, or --dimension NAME")
        return dimension_of(opinion.name)

    def _note_own(self, name: str) -> None:
        if name not in DIMENSIONS and not name.startswith(_TRAIL):
            self.imported.own_dimensions.add(name)

    def _on_our_scale(self, file: str, opinion: Opinion) -> tuple[float | None, str]:
        """The score of 0 to 3, and a line on the original value where it was mapped."""
        original: Value = opinion.label if opinion.value is None else opinion.value
        name = cast("str", opinion.name)
        if opinion.not_applicable:
            if original is not None:
                raise _RefusedError(f"a score ({original}) and not applicable", "keep one of the two")
            return None, ""
        if original is None:
            raise _RefusedError(
                "the row holds no score, no label and no error", "leave it out, or give --columns score=COLUMN"
            )
        if name.startswith(_TRAIL) and isinstance(original, float):
            return original, ""
        scale = _scale(name, self.options)
        if scale is not None:
            return self._mapped(scale, opinion)
        another = self.foreign.get((file, folded(name)))
        if opinion.value is None:
            words = f"the label {opinion.label!r} of {name} is not a score"
            raise _RefusedError(words, f"map it to a score: --scale '{name}:{opinion.label}=3,...'")
        if another is not None:
            raise _RefusedError(
                f"{name} is not on the scale 0..3: it is {another}",
                f"map the scale, such as --scale '{name}:1..5=0..3', or correct that row",
            )
        return float(cast("int", plain_score(opinion.value))), ""

    def _mapped(self, scale: Scale, opinion: Opinion) -> tuple[float, str]:
        for original in (opinion.value, opinion.label):
            score = None if original is None else scale.score(original)
            if score is not None:
                shown = f"{original:g}" if isinstance(original, float) else original
                return float(score), f"given as {shown} (scale {scale.text})"
        original = opinion.label if opinion.value is None else opinion.value
        raise _RefusedError(
            f"{original!r} is not on the scale {scale.text}", "correct the row, or give a --scale that holds it"
        )

    def _verdict(self, file: str, opinion: Opinion, author: str) -> None:
        name = self._dimension(opinion)
        value, original = self._on_our_scale(file, opinion)
        self._note_own(name)
        words = "\n".join(filter(None, (opinion.comment, original)))
        trace_id = cast("str", opinion.trace_id)
        if opinion.span_ids:
            score = "not applicable" if value is None else f"{value:g}"
            line = f"{', '.join(opinion.span_ids)}: {score} {words}".strip()
            self.of_spans.setdefault((author, name, trace_id), []).append(line)
            return
        reason = "the evaluator gave no score" if value is None else None
        verdict = _verdict(author, name, trace_id, value, words, reason)
        self.imported.verdicts.setdefault(author, []).append(verdict)

    def _error(self, opinion: Opinion, author: str) -> None:
        label = _error_label(opinion, author)
        known = self.errors.get(label.label_id)
        if known is not None:  # an error of several dimensions has a row for each
            label = replace(known, dimensions=tuple(dict.fromkeys((*known.dimensions, *label.dimensions))))
        self.errors[label.label_id] = label


def _error_label(opinion: Opinion, author: str) -> ErrorLabel:
    names = [dimension_of(part) for part in (opinion.name or "").replace(";", ",").replace(",", " ").split()]
    whole = dimension_of(opinion.name or "")
    names = [whole] if whole in DIMENSIONS else names
    category = opinion.category or (opinion.label if opinion.evidence or opinion.impact else None)
    known = (normal_category(category) or category) if category else None
    named = tuple(dict.fromkeys(one for name in names for one in DIMENSIONS if one == name))
    unknown = [name for name in names if name not in DIMENSIONS]
    is_ours = opinion.attributes is not None
    attributes = dict(opinion.attributes) if isinstance(opinion.attributes, dict) else {}
    if unknown:
        attributes["dimension"] = opinion.name
    trace_id = cast("str", opinion.trace_id)
    return ErrorLabel(
        label_id=opinion.label_id or _label_id(opinion, author),
        trace_id=trace_id,
        annotator=author,
        span_ids=opinion.span_ids,
        dimensions=named or (() if is_ours or known is None else dimensions_of(known)),
        impact=_impact(opinion.impact),
        description=opinion.comment,
        category=known,
        evidence=_evidence(opinion),
        phase=_phase(opinion),
        attributes=attributes,
    )


def _evidence(opinion: Opinion) -> tuple[Evidence, ...]:
    """The quotes with their places as our own export writes them, else the quote in the first span."""
    names = set(Evidence.__dataclass_fields__)
    if isinstance(opinion.places, list) and opinion.places:
        pieces = [one for one in opinion.places if isinstance(one, dict) and "quote" in one]
        return tuple(Evidence(**cast("Any", {key: one[key] for key in names & one.keys()})) for one in pieces)
    span_id = opinion.span_ids[0] if opinion.span_ids else None
    return (Evidence(quote=opinion.evidence, span_id=span_id),) if opinion.evidence else ()


def _label_id(opinion: Opinion, author: str) -> str:
    """The same for the same error whenever it is imported again."""
    content = [author, opinion.trace_id, list(opinion.span_ids), opinion.name, opinion.label, opinion.category,
            opinion.impact, opinion.comment, opinion.evidence]  # fmt: skip
    return str(uuid5(NAMESPACE_URL, f"tracejury:label:{json_text(cast('Json', content))}"))


def _impact(text: str | None) -> Impact | None:
    for impact in IMPACTS:
        if text is not None and text.strip().lower() == impact:
            return impact
    if text is None:
        return None
    raise _RefusedError(f"the impact {text!r} is unknown", "use low, medium or high")


def _phase(opinion: Opinion) -> Phase:
    if opinion.phase in {None, "blind"}:
        return "blind"
    if opinion.phase == "revealed":
        return "revealed"
    raise _RefusedError(f"the phase {opinion.phase!r} is unknown", "use blind or revealed")


def _confidence(opinion: Opinion) -> int | None:
    if opinion.confidence is None:
        return None
    if opinion.confidence not in {"1", "2", "3"}:
        raise _RefusedError(f"the confidence {opinion.confidence!r} is unknown", "use 1, 2 or 3, or leave it empty")
    return int(opinion.confidence)


def _verdict(
    author: str, dimension: str, trace_id: str, value: float | None, words: str, reason: str | None
) -> Verdict:
    return Verdict(
        rubric=dimension,
        trace_id=trace_id,
        state="not_applicable" if value is None else "scored",
        score=None if value is None else int(value),
        criteria="",
        rationale=words,
        findings=(),
        call=Call(model=author),
        reason=reason,
    )


def _bare_id(text: str) -> str:
    return text.strip().lower().removeprefix("0x")


def known_dimension(name: str) -> Dimension | None:
    """The dimension that a name means; None for an own one."""
    return next((one for one in DIMENSIONS if one == dimension_of(name)), None)
