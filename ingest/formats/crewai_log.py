"""CrewAI: the log of a crew (`output_log_file`) as text or JSON: the start and end of each task, with its agent.

It holds no call of a model (crewai/utilities/file_handler.py). Each run of the crew in the file is one trace: a task is
an agent's span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tracejury.ingest.formats.exports import Shaped, as_text, shaped_trace
from tracejury.ingest.formats.fields import Fields, time_of_any
from tracejury.ingest.parse import clean_text, parse_json, to_utf8
from tracejury.ingest.sniff import FileSample
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, SpanDraft, Trace

NAME = "crewai"

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d): (?=task_name=\"|task=\"|agent=\")", re.MULTILINE)
_FIELDS = ("task_name", "task", "agent", "status", "output")
_FIELD = re.compile(r'(?:^|, )(task_name|task|agent|status|output)="')
_SNIFFED = re.compile(rb'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d: (?:task_name|task|agent)="')

Record = dict[str, Json]


def sniff(sample: FileSample) -> bool:
    """The first line of the log, or the fields of its JSON."""
    is_json = sample.start[:1] == b"[" and {"timestamp", "task", "agent", "status"} <= sample.keys
    return is_json or _SNIFFED.match(sample.start) is not None


def read(source: Source) -> Iterator[Trace | Rejected]:
    """The trace of each run of the crew."""
    data, damage = to_utf8(source.data)
    warnings = list(damage)
    text = clean_text(data.decode("utf-8", "surrogateescape"))
    records = list(_json(data, warnings) if text.lstrip().startswith("[") else _text(text))
    if not records:
        raise IngestError("holds no task of a crew", remedy="leave it out")
    name = source.stem
    runs = list(_runs(records))
    for number, run in enumerate(runs, 1):
        yield _trace(run, name if len(runs) == 1 else f"{name}-{number}", source, warnings)


def _json(data: bytes, warnings: list[str]) -> Iterator[Record]:
    fields = Fields({"tasks": parse_json(data)}, "", warnings)
    yield from (one.raw for one in fields.objects("tasks"))


def _text(text: str) -> Iterator[Record]:
    pieces = _LINE.split(text)[1:]
    for moment, body in zip(pieces[::2], pieces[1::2], strict=True):
        places = _in_order(list(_FIELD.finditer(body)))
        ends = [*(place.start() for place in places[1:]), len(body.rstrip("\n"))]
        values = {place[1]: body[place.end() : end].removesuffix('"') for place, end in zip(places, ends, strict=True)}
        yield {"timestamp": moment, **values}


def _in_order(places: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The fields in the order in which they are written: what looks like one within an output is its text."""
    chosen: list[re.Match[str]] = []
    for place in places:
        if not chosen or _FIELDS.index(place[1]) > _FIELDS.index(chosen[-1][1]):
            chosen.append(place)
    return chosen


def _runs(records: Sequence[Record]) -> Iterator[list[Record]]:
    """The records of each run: a task that begins again begins the next one."""
    run: list[Record] = []
    for record in records:
        begun = {_task(one) for one in run if one.get("status") == "started"}
        ended = {_task(one) for one in run if one.get("status") != "started"}
        if record.get("status") == "started" and _task(record) in begun & ended:
            yield run
            run = []
        run.append(record)
    yield run


def _task(record: Record) -> tuple[str | None, str | None, str | None]:
    task = as_text(record.get("task"))
    return as_text(record.get("task_name")), task, as_text(record.get("agent"))


def _trace(run: Sequence[Record], name: str, source: Source, warnings: Sequence[str]) -> Trace:
    root = SpanDraft(span_id=name, parent_span_id=None, name="crew", kind="CHAIN")
    drafts: dict[tuple[str | None, str | None, str | None], SpanDraft] = {}
    for record in run:
        task, moment = _task(record), time_of_any(f"{as_text(record.get('timestamp')) or ''}Z".replace(" ", "T"))
        draft = drafts.setdefault(task, _agent(task, f"{name}-task-{len(drafts) + 1}", name))
        if record.get("status") == "started":
            draft.start_time = moment
        else:
            draft.end_time, draft.output = moment, as_text(record.get("output"))
            draft.status = "ERROR" if record.get("status") == "failed" else "UNSET"
    root.start_time = min((one.start_time for one in drafts.values() if one.start_time is not None), default=None)
    root.end_time = max((one.end_time for one in drafts.values() if one.end_time is not None), default=None)
    first, last = next(iter(drafts.values())), list(drafts.values())[-1]
    root.input, root.output = first.input, last.output
    return shaped_trace(
        [Shaped(root), *map(Shaped, drafts.values())], trace_id=name, format=NAME, source=source, goal=first.input,
        final_answer=last.output, warnings=warnings,
    )  # fmt: skip


def _agent(task: tuple[str | None, str | None, str | None], span_id: str, parent: str) -> SpanDraft:
    name, words, agent = task
    draft = SpanDraft(span_id=span_id, parent_span_id=parent, name=agent or name or "task", kind="AGENT")
    draft.input = words
    if name:
        draft.attributes["task_name"] = name
    return draft
