"""Nothing of a GAIA2 or MASEval file is lost, and nothing in one, however broken, stops the reading."""

import ast
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracejury.ingest.formats import gaia2, maseval
from tracejury.ingest.formats.gaia2.lite import unwrapped
from tracejury.ingest.readers import read_bytes, read_traces
from tracejury.ingest.times import from_iso
from tracejury.ingest.trace import Rejected, Source, Trace

SMALL = Path(__file__).parent / "gaia2"
NAME = "scenario_ficus_run_1_0a1b2c3d"
FORMS = ("gui", "hf", "lite")


def small(form: str) -> Any:
    name = "maseval/report.json" if form == "maseval" else f"{form}/{NAME}.json"
    return json.loads((SMALL / name).read_text(encoding="utf-8"))


def opened(text: str) -> Any:
    """What a text holds as JSON or, in scenarios written in Python, as a literal."""
    if text[:1] not in "{[":
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, TypeError):
            continue
        return found if isinstance(found, dict | list) else None
    return None


def leaves(value: Any) -> Iterator[str | float]:
    """Every text and number of a value, those inside JSON texts too."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        held = opened(value)
        if held is None:
            yield value.strip()
        else:
            yield from leaves(held)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


IMPLIED = {
    "", "None", "CompletedEvent", "unknown",  # every completed event's class, the agent id of every action
    "int", "float", "bool", "str", "list", "dict", "NoneType",  # told by the JSON of an argument
    "action", "llm_input", "tool_call", "step",  # told by the kind of the row
    "error",  # told by its status
}  # fmt: skip


def keys(value: Any) -> Iterator[str]:
    """Names of arguments are texts in the source and keys in ours."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from keys(item)
    elif isinstance(value, str):
        yield from keys(opened(value))


def told(trace: Trace) -> Iterator[str | float]:
    for span in trace.spans:
        yield from leaves(dataclasses.asdict(span))
    yield from leaves([dataclasses.asdict(message) for message in trace.messages])
    yield from leaves([dataclasses.asdict(event) for event in trace.expected_events])
    yield from leaves([log.body for log in trace.logs])
    yield from leaves(dict(trace.attributes))
    yield from leaves([trace.trace_id, trace.goal, trace.final_answer])
    if trace.outcome is not None:
        yield from leaves(dataclasses.asdict(trace.outcome))


def lost(source: Any, trace: Trace) -> list[str | float]:
    """Leaves of the source that the trace does not tell. A time may be told in microseconds, a text inside another."""
    known = set(told(trace))
    texts = "\n".join(text for text in known if isinstance(text, str))
    names = {key for span in trace.spans for key in keys([span.tool_arguments, span.input, dict(span.attributes)])}
    names |= {key for event in trace.expected_events for key in keys(event.args)}
    calls = {span.name.replace("__", ": ") for span in trace.spans}
    missing = []
    for leaf in set(leaves(source)):
        if leaf in known or leaf in IMPLIED or leaf in names or leaf in calls or leaf == 0:
            continue
        if isinstance(leaf, str) and (leaf in texts or _number(leaf) in known or from_iso(leaf) in known):
            continue
        if isinstance(leaf, float) and round(leaf * 1e6) in known:
            continue
        missing.append(leaf)
    return missing


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def without_dropped(export: Any) -> Any:
    """The export without the checks of conditions that did not come true: those are counted, not kept."""
    if "completed_events" not in export:
        return export
    kept = []
    for event in export["completed_events"]:
        if event["event_type"] != "CONDITION":
            kept.append(event)
        elif event["metadata"]["return_value"] == "True":
            kept.append({"event_id": event["event_id"]})
    return export | {"completed_events": kept}


def one(value: Any, reader: Any = gaia2, file: str = f"{NAME}.json") -> Trace:
    (trace,) = reader.read(Source(file=file, data=json.dumps(value).encode()))
    assert isinstance(trace, Trace), trace
    return trace


@pytest.mark.parametrize("form", FORMS)
def test_every_leaf_of_a_small_file_is_found_again(form: str) -> None:
    assert lost(without_dropped(small(form)), one(small(form))) == []


def test_every_leaf_of_a_small_report_is_found_again() -> None:
    (report,) = small("maseval")
    assert lost(report, one([report], maseval)) == []


@pytest.mark.shared
@pytest.mark.parametrize("form", FORMS)
def test_every_leaf_of_real_files_is_found_again(shared: Path, form: str) -> None:
    paths = [path for path in sorted((shared / "gaia2").glob(f"*/{form}/*.json")) if "maxiter80" not in path.parts[-3]]
    assert len(paths) >= 10
    for path in paths:
        if "oracle" in str(path) and form == "lite":
            continue
        value = json.loads(path.read_bytes())
        assert lost(without_dropped(value), one(value, file=path.name)) == [], path


@pytest.mark.shared
def test_every_leaf_of_real_files_of_one_execution_is_found_again(shared: Path) -> None:
    (trace,) = [found for found in read_traces(shared / "gaia2/gaia2_a2a") if isinstance(found, Trace)]
    for form in FORMS:
        (path,) = (shared / f"gaia2/gaia2_a2a/{form}").glob("*.json")
        value = json.loads(path.read_bytes())
        for history in value.get("per_agent_interaction_histories", {}).values():
            for message in history:
                # An observation that no model was sent any more: the log has it without ARE's wrapping.
                message["content"] = unwrapped(message["role"], message["content"])[1]
        assert lost(without_dropped(value), trace) == [], form


@pytest.mark.shared
def test_every_leaf_of_real_reports_is_found_again(shared: Path) -> None:
    for path in sorted((shared / "gaia2/maseval").glob("report*.json")):
        (report,) = json.loads(path.read_bytes())
        if report["traces"]:
            assert lost(report, one([report], maseval)) == [], path


@pytest.mark.shared
def test_every_leaf_of_a_real_row_is_found_again(shared: Path) -> None:
    for path in sorted((shared / "gaia2").glob("*/hf_row.json")):
        row = json.loads(path.read_bytes())
        (trace,) = gaia2.read(Source(file="row", data=path.read_bytes()))
        assert isinstance(trace, Trace)
        row["data"] = without_dropped(json.loads(row["data"]))
        assert lost(row, trace) == [], path


def test_every_log_entry_and_every_completed_event_is_a_row_or_in_one() -> None:
    export = small("gui")
    trace = one(export)
    known = set(told(trace))
    entries = [json.loads(entry) for entry in export["world_logs"]]
    assert [entry for entry in entries if entry["id"] not in known] == []
    events = [event for event in export["completed_events"] if event["event_type"] != "CONDITION"]
    assert [event for event in events if event["event_id"] not in known] == []


# However a file is broken


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if new is _GONE and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


_GONE = object()
JUNK = st.sampled_from(
    [
        _GONE, None, "", "text", "\x00", "\ud800", 0, -1, 1.5, 1e300, -1e300, 10**30, float("nan"), float("inf"), True,
        [], {}, [None], [[]], [1, "a", {}], {"": ""}, {"a": {"b": []}}, "{", "[1", '{"log_type": "step"}', "x" * 3000,
    ]
)  # fmt: skip


def logs_opened(export: Any) -> Any:
    """An export whose log entries are objects, so that mutations reach inside them."""
    return export | {"world_logs": [json.loads(entry) for entry in export["world_logs"]]}


MUTABLE = {
    "gui": logs_opened(small("gui")),
    "hf": small("hf"),
    "lite": small("lite"),
    "maseval": small("maseval"),
}
PLACES = {form: list(places(value)) for form, value in MUTABLE.items()}


def check(results: list[Trace | Rejected]) -> None:
    assert results, "nothing came of it, and nothing was said"
    for result in results:
        if isinstance(result, Rejected):
            assert result.file
            assert result.reason
            assert result.remedy
            assert "the reader failed" not in result.reason, result
            continue
        ids = [span.span_id for span in result.spans]
        assert len(set(ids)) == len(ids)
        assert sum(span.parent_span_id not in ids for span in result.spans) == 1
        assert all(span.duration_s is None or span.duration_s >= 0 for span in result.spans)
        assert not any("orphan" in warning or "cycle" in warning for warning in result.all_warnings)


@pytest.mark.parametrize("form", sorted(MUTABLE))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mutated_file_is_read_or_refused_by_name(form: str, data: st.DataObject) -> None:
    value = MUTABLE[form]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(PLACES[form]))
        try:
            value = changed(value, path, data.draw(JUNK))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    if value is _GONE:
        return
    reader = maseval if form == "maseval" else gaia2
    written = json.dumps(value).encode()
    results = list(read_bytes(written, file="mutated.json", format=reader.NAME))
    if value == []:
        return
    check(results)
    assert results == list(read_bytes(written, file="mutated.json", format=reader.NAME))


@pytest.mark.parametrize("form", sorted(MUTABLE))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_truncated_file_is_refused_with_line_and_column(form: str, data: st.DataObject) -> None:
    whole = json.dumps(small(form), indent=1).encode()
    end = data.draw(st.integers(1, len(whole) - 2))
    reader = maseval if form == "maseval" else gaia2
    check(list(read_bytes(whole[:end], file="cut.json", format=reader.NAME)))


def test_very_deep_nesting_is_kept_as_text_or_refused() -> None:
    for depth in (300, 5_000):
        deep = "[" * depth + "]" * depth
        text = json.dumps(small("hf")).replace('"app_state": {', f'"app_state": {{"deep": {deep}, ', 1)
        check(list(read_bytes(text.encode(), file="deep.json", format="gaia2")))


def test_shuffled_keys_give_the_same_trace() -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    export = small("gui")
    assert dataclasses.replace(one(turned(export)), source=Source(file="")) == dataclasses.replace(
        one(export), source=Source(file="")
    )
