"""Inspect (UK AISI): `.eval` files (a zip of JSON) and JSON logs; each sample is a trace, each event a span.

Schema: `inspect_ai.log.EvalLog`. A sample's target, metadata, scores and all that its scorers do hold the right answer:
they go to the logs. `attachment://` texts are put back where they are named.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from tracejury.ingest.bounded import DAMAGE, read_member
from tracejury.ingest.conventions.context import SpanLog
from tracejury.ingest.conventions.message_json import ParsedMessage, content_text, read_message
from tracejury.ingest.conventions.parts import arguments_text
from tracejury.ingest.formats.exports import Shaped, as_text, shaped_trace
from tracejury.ingest.formats.fields import Fields
from tracejury.ingest.formats.spans import brief, kept
from tracejury.ingest.parse import parse_json
from tracejury.ingest.sniff import FileSample, rejected
from tracejury.ingest.trace import IngestError, Json, Message, Rejected, Source, SpanDraft, SpanKind, Trace

NAME = "inspect"
READS_ARCHIVES = True

_GOLD_KEYS = ("target", "scores", "score", "metadata")
_SPAN_KINDS: dict[str, SpanKind] = {"agent": "AGENT"}
_GOLD_HEADERS = ("results", "reductions")
_ATTACHMENT = "attachment://"


def sniff(sample: FileSample) -> bool:
    """An `.eval` zip by the names in it, or a JSON log by `eval`, `plan` and `samples`."""
    if sample.data.startswith(b"PK"):
        return b"_journal/start.json" in sample.data or (b"header.json" in sample.data and b"samples/" in sample.data)
    keys = sample.keys
    return {"version", "status", "eval"} <= keys and bool({"task", "run_id", "eval_id", "plan"} & keys)


def read(source: Source) -> Iterator[Trace | Rejected]:
    """Every sample of the log as a trace; a sample that cannot be read is rejected by name."""
    header: dict[str, Json] = {}
    count = 0
    for place, item in _samples(source.data):
        if isinstance(item, IngestError):
            yield rejected(source.file, item)
        elif place == "header":
            header = item
        else:
            count += 1
            try:
                yield _trace(item, header, place, source)
            except IngestError as error:
                yield rejected(source.file, error)
    if not count:
        raise IngestError("an Inspect log without samples", remedy="use the full log, not only its header")


def _samples(data: bytes) -> Iterator[tuple[str, dict[str, Json] | IngestError]]:
    if data.startswith(b"PK"):
        yield from _zipped(data)
        return
    value = parse_json(data)
    if not isinstance(value, dict):
        raise IngestError("looks like inspect but is not an object", remedy="use the JSON log that Inspect writes")
    samples = value.get("samples")
    yield "header", {key: item for key, item in value.items() if key != "samples"}
    for number, item in enumerate(samples if isinstance(samples, list) else []):
        place = f"samples[{number}]"
        yield (
            place,
            item
            if isinstance(item, dict)
            else IngestError(f"{place} is not an object", place=place, remedy="copy the log again"),
        )


def _zipped(data: bytes) -> Iterator[tuple[str, dict[str, Json] | IngestError]]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (*DAMAGE, ValueError) as error:
        raise IngestError(f"damaged .eval file: {error}", remedy="copy it again") from error
    with archive:
        names = archive.namelist()
        for name in ("_journal/start.json", "header.json"):
            if name in names:
                yield "header", _object(data, archive, name)
        for name in sorted(names):
            if name.startswith("samples/") and name.endswith(".json"):
                try:
                    yield name, _object(data, archive, name)
                except IngestError as error:
                    yield name, error


def _object(data: bytes, archive: zipfile.ZipFile, name: str) -> dict[str, Json]:
    try:
        value = parse_json(read_member(data, archive, archive.getinfo(name)))
    except IngestError as error:
        place = f"{name}, {error.place}" if error.place else name
        raise IngestError(error.reason, place=place, remedy=error.remedy) from error
    if not isinstance(value, dict):
        raise IngestError("is not an object", place=name, remedy="copy the file again")
    return value


def _trace(sample: dict[str, Json], header: dict[str, Json], place: str, source: Source) -> Trace:
    warnings: list[str] = []
    attachments = Fields(sample, warnings=warnings).nested("attachments")
    sample = {key: item for key, item in sample.items() if key != "attachments"}
    if attachments:
        _attach(cast("Json", sample), attachments, warnings)
    _fill_inputs(sample, warnings)
    fields, evaluation = Fields(sample, warnings=warnings), Fields(header).inner("eval")
    run = evaluation.text("runid", "evalid") or "inspect"
    trace_id = fields.text("uuid") or f"{run}/{as_text(fields.peek('id'))}/{as_text(fields.peek('epoch'))}"
    logs = [_log(key, content, trace_id) for key in _GOLD_KEYS if (content := fields.take(key))]
    logs += [_log(key, header[key], trace_id) for key in _GOLD_HEADERS if header.get(key)]
    task = evaluation.text("task") or "sample"
    root = Shaped(SpanDraft(span_id=f"{trace_id}/sample", name=task, kind="CHAIN"))
    shaped = [root, *_events(fields, root.draft.span_id, logs, trace_id)]
    if len(shaped) == 1:
        shaped.extend(_from_messages(fields.peek("messages"), root.draft.span_id))
    _shape_root(root, fields, shaped)
    return shaped_trace(
        shaped,
        trace_id=trace_id,
        format=NAME,
        source=replace(source, place=place),
        attributes={
            **{key: kept(item) for key, item in fields.values.items() if item not in ({}, [])},
            **{
                f"log.{key}": kept(item)
                for key, item in header.items()
                if key not in _GOLD_HEADERS and item is not None
            },
        },
        goal=_goal(sample.get("input")),
        final_answer=root.draft.output,
        logs=logs,
        warnings=warnings,
    )


def _fill_inputs(sample: dict[str, Json], warnings: list[str]) -> None:
    """Put the messages of a call back where newer logs name them: `input_refs` are ranges of `events_data.messages`."""
    data = sample.get("events_data")
    pool = data.get("messages") if isinstance(data, dict) else None
    events = sample.get("events")
    if not isinstance(data, dict) or not isinstance(pool, list) or not isinstance(events, list):
        return
    used: set[int] = set()
    for event in events:
        if not isinstance(event, dict) or event.get("input"):
            continue
        numbers = _range_numbers(event.get("input_refs"), len(pool))
        if numbers is None:
            if event.get("input_refs"):
                warnings.append(
                    f"unreadable_refs: input_refs is {brief(event['input_refs'])}; its messages are not shown"
                )
            continue
        del event["input_refs"]
        event["input"] = [pool[number] for number in numbers]
        used.update(numbers)
    left = [message for number, message in enumerate(pool) if number not in used]
    rest: dict[str, Json] = {key: item for key, item in data.items() if key != "messages" and item}
    sample["events_data"] = {**rest, "messages": left} if left else rest


def _range_numbers(refs: Json, size: int) -> list[int] | None:
    if not isinstance(refs, list) or not refs:
        return None
    numbers: list[int] = []
    for pair in refs:
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        begin, end = pair
        if not isinstance(begin, int) or not isinstance(end, int) or not 0 <= begin <= end <= size:
            return None
        numbers.extend(range(begin, end))
    return numbers


def _shape_root(root: Shaped, sample: Fields, shaped: list[Shaped]) -> None:
    draft = root.draft
    times = [time for item in shaped[1:] for time in (item.draft.start_time, item.draft.end_time) if time is not None]
    draft.start_time, draft.end_time = (min(times), max(times)) if times else (None, None)
    question = sample.take("input")
    turns = _messages(question)
    if turns is None:
        draft.input = as_text(question)
    else:
        root.inputs = [item.message for item in turns]
    if output := sample.nested("output"):
        draft.output = as_text(output.get("completion")) or _completion(output)
        draft.attributes["output"] = kept({key: item for key, item in output.items() if key not in ("completion",)})
    messages = {message for item in shaped for message in (*item.inputs, *item.outputs)}
    missing = [one for one in sample.listed("messages") if not _is_said(one, messages)]
    if missing:
        draft.attributes["messages"] = kept(missing)
    error = sample.take("error")
    _fail(draft, error)
    draft.attributes.update({} if error is None else {"error": kept(error)})


def _fail(draft: SpanDraft, error: Json) -> None:
    if error is not None:
        draft.status = "ERROR"
        draft.status_message = as_text(error.get("message")) if isinstance(error, dict) else as_text(error)


def _is_said(value: Json, messages: set[Message]) -> bool:
    turn = _message(value)
    return turn is not None and turn.message in messages


def _events(sample: Fields, root: str, logs: list[SpanLog], trace_id: str) -> list[Shaped]:
    """Each event as a span (an end closes the span it names); scores go to the logs."""
    shaped: list[Shaped] = []
    open_spans: dict[str, SpanDraft] = {}
    scoring: set[str] = set()
    for number, event in enumerate(sample.objects("events", code="unreadable_span")):
        name = event.text("event") or "event"
        if _is_scoring(event, name, scoring):
            logs.append(_log(name, event.raw, trace_id))
            continue
        ended = open_spans.get(as_text(event.peek("id")) or "") if name == "span_end" else None
        if ended is not None:
            event.drop("id")
            ended.end_time = event.time("timestamp")
            ended.attributes["span_end"] = kept(event.values)
        else:
            item = _event(event, name, root, number)
            shaped.append(item)
            if name == "span_begin":
                open_spans[item.draft.span_id] = item.draft
    present = {item.draft.span_id for item in shaped}
    for item in shaped:
        if item.draft.parent_span_id not in present:
            if item.draft.parent_span_id not in (None, root):
                item.draft.attributes["span_id"] = item.draft.parent_span_id
            item.draft.parent_span_id = root
    return shaped


def _is_scoring(event: Fields, name: str, scoring: set[str]) -> bool:
    """Whether an event belongs to a scorer, or shows the sample with its target; spans of scorers are remembered."""
    own, above, holder = (as_text(event.peek(key)) or "" for key in ("id", "parentid", "spanid"))
    if name == "span_begin" and (event.peek("type") in ("scorer", "scorers") or above in scoring):
        scoring.add(own)
    within = own in scoring if name in ("span_begin", "span_end") else holder in scoring
    return within or name in ("score", "sample_init", "score_edit")


def _event(event: Fields, name: str, root: str, number: int) -> Shaped:
    begin = name == "span_begin"
    span_id = event.text("id" if begin else "uuid") or f"event-{number}"
    draft = SpanDraft(span_id=span_id, name=event.text("name") or name, kind="EVENT")
    event.warnings = draft.warnings
    draft.parent_span_id = event.text("parentid" if begin else "spanid") or root
    event.drop("spanid", "parentid")
    draft.start_time = event.time("timestamp")
    draft.end_time = event.time("completed") or (None if begin else draft.start_time)
    shaped = Shaped(draft)
    left = event.values
    if begin:
        draft.kind = _SPAN_KINDS.get(as_text(left.get("type")) or "", "CHAIN")
    elif name == "model":
        _model(shaped, left)
    elif name == "tool":
        _tool(draft, left)
    _fail(draft, left.get("error"))
    draft.attributes = {"event": name, **{key: kept(item) for key, item in left.items() if item is not None}}
    return shaped


def _model(shaped: Shaped, left: dict[str, Json]) -> None:
    draft = shaped.draft
    draft.kind = "LLM"
    draft.model = as_text(left.pop("model", None))
    draft.name = draft.model or "model"
    turns = _messages(left.get("input"))
    if turns is not None:
        shaped.inputs = [item.message for item in turns]
        rests = [item.rest for item in turns]
        left["input"] = rests if any(rest is not None for rest in rests) else None
    output = left.get("output")
    if not isinstance(output, dict):
        return
    output = dict(output)
    usage = Fields(output, "output", draft.warnings).inner("usage")
    for column, key in (
        ("prompt_tokens", "inputtokens"), ("completion_tokens", "outputtokens"), ("total_tokens", "totaltokens"),
        ("reasoning_tokens", "reasoningtokens"),
    ):  # fmt: skip
        setattr(draft, column, usage.count(key))
    choices = output.get("choices")
    listed = choices if isinstance(choices, list) else []
    read = [_message(c.get("message")) if isinstance(c, dict) else None for c in listed]
    if read and all(item is not None for item in read):
        shaped.outputs = [item.message for item in read if item is not None]
        rests = [
            {**{k: v for k, v in c.items() if k != "message"}, "message": item.rest if item is not None else None}
            for c, item in zip(cast("list[dict[str, Json]]", choices), read, strict=True)
        ]
        output["choices"] = cast("Json", rests)
        if output.get("completion") in [message.content for message in shaped.outputs]:
            del output["completion"]
    left["output"] = output


def _tool(draft: SpanDraft, left: dict[str, Json]) -> None:
    draft.kind = "TOOL"
    draft.tool_name = as_text(left.pop("function", None))
    draft.name = draft.tool_name or "tool"
    draft.tool_call_id = as_text(left.pop("id", None))
    draft.tool_arguments = arguments_text(left.pop("arguments", None))
    draft.output = content_text(left.pop("result", None))


def _from_messages(messages: Json, root: str) -> list[Shaped]:
    """A log written without events: each answer of the model is a call, with all that was said before it."""
    turns = _messages(messages) or []
    shaped = []
    for number, item in enumerate(turns):
        if item.message.role == "assistant":
            draft = SpanDraft(span_id=f"message-{number}", parent_span_id=root, name="model", kind="LLM")
            draft.warnings.append("no_events: this call is derived from the sample's messages; it has no time")
            before = [one.message for one in turns[:number]]
            shaped.append(Shaped(draft, before, [item.message]))
    return shaped


def _messages(value: Json) -> list[ParsedMessage] | None:
    if not isinstance(value, list) or not value:
        return None
    messages = [_message(item) for item in value]
    return None if None in messages else [item for item in messages if item is not None]


def _message(value: Json) -> ParsedMessage | None:
    """Inspect's ChatMessage: as OpenAI's, with tool calls as `{"id", "function": name, "arguments"}`."""
    if not isinstance(value, dict):
        return None
    calls = value.get("tool_calls")
    calls = calls if isinstance(calls, list) else []
    if calls and all(isinstance(call, dict) and isinstance(call.get("function"), str) for call in calls):
        plain: list[Json] = [
            {"name": call["function"], **{k: v for k, v in call.items() if k != "function"}}
            for call in calls
            if isinstance(call, dict)
        ]
        value = {**value, "tool_calls": plain}
    return read_message(value)


def _completion(output: dict[str, Json]) -> str | None:
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    turn = _message(first.get("message")) if isinstance(first, dict) else None
    return None if turn is None else turn.message.content


def _goal(value: Json) -> str | None:
    turns = _messages(value)
    if turns is None:
        return as_text(value)
    return next((item.message.content for item in turns if item.message.role == "user"), None)


def _log(name: str, value: Json, trace_id: str) -> SpanLog:
    return SpanLog(trace_id=trace_id, span_id="", event_name=name, time=None, body=kept(value), attributes={}, rest={})


def _attach(value: Json, attachments: dict[str, Json], warnings: list[str]) -> None:
    """Put each attached text back in place of its name, without recursion."""
    stack: list[Json] = [value]
    missing: set[str] = set()
    while stack:
        node = stack.pop()
        if not isinstance(node, (dict, list)):
            continue
        for key, item in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            if isinstance(item, str) and item.startswith(_ATTACHMENT):
                text = attachments.get(item.removeprefix(_ATTACHMENT))
                if text is None:
                    missing.add(item)
                else:
                    node[key] = text  # type: ignore[index]
            elif isinstance(item, (dict, list)):
                stack.append(item)
    warnings.extend(
        f"missing_attachment: the log names the attachment {name:.60} but does not hold it" for name in sorted(missing)
    )
