"""What could not be read is told with counts, and marks the trace."""

from pathlib import Path

import pytest
from tests.ingest.spans import span, trace, write

from tracejury.ingest.batch import ingest
from tracejury.ingest.store import marked_traces, read_transaction
from tracejury.judging.store import open_workspace

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
SAID = {**CHAT, "gen_ai.input.messages": '[{"role": "user", "content": "Hi"}]'}


def codes(*spans: dict[str, object]) -> dict[str, str]:
    return {warning.partition(": ")[0]: warning.partition(": ")[2] for warning in trace(*spans).warnings}


def test_model_calls_without_messages_are_counted_and_the_place_of_the_text_is_named() -> None:
    found = codes(span("a", {**CHAT, "acme.llm.request": "Hi"}), span("b", SAID), span("c", SAID))
    assert found == {
        "no_messages": "1 of 3 model calls has no readable messages; the text is in `acme.llm.request`. Try: --map"
    }


def test_where_the_source_holds_no_text_the_warning_says_so() -> None:
    assert codes(span("a", CHAT))["no_messages"] == (
        "1 of 1 model call has no readable messages; the source holds no text there. "
        "Try: record message content, by the settings of the tracer"
    )


def test_messages_without_content_are_no_messages() -> None:
    assert "no_messages" in codes(span("a", {**CHAT, "gen_ai.input.messages": '[{"role": "user", "content": null}]'}))


def test_a_model_call_that_failed_lacks_nothing() -> None:
    assert "no_messages" not in codes(span("a", CHAT, error="overloaded"))


def test_tool_calls_without_arguments_and_result_are_counted() -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
    found = codes(span("a", tool), span("b", {**tool, "gen_ai.tool.call.arguments": "{}"}), span("c", SAID))
    assert found["no_tool_text"].startswith("1 of 2 tool calls has neither arguments nor result")


def test_a_trace_whose_spans_all_lack_a_kind_is_warned_of() -> None:
    assert codes(span("a", {"acme.prompt": "Hi"}), span("b"))["no_kinds"].startswith(
        "none of 2 spans tells its kind; the text is in `acme.prompt`"
    )


def test_tokens_that_stand_around_the_calls_only_are_warned_of() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 4, "gen_ai.usage.output_tokens": 2}
    assert "tokens_on_wrappers" in codes(span("a", agent), span("b", SAID, parent=0))


@pytest.mark.parametrize(
    ("attributes", "is_empty"), [({}, True), ({"acme.id": "7"}, True), ({"acme.prompt": "Hi"}, False)]
)
def test_a_trace_of_names_and_times_holds_nothing_to_read(attributes: dict[str, object], is_empty: bool) -> None:
    assert ("nothing_to_read" in codes(span("step", attributes))) == is_empty


def test_the_gaps_of_a_file_are_one_line_each_with_the_counts_of_all_its_traces(tmp_path: Path) -> None:
    lines = [write(tmp_path / f"{n}", span("a", CHAT), span("b", CHAT), trace_id=f"{n:032x}") for n in (1, 2)]
    file = tmp_path / "both.jsonl"
    file.write_bytes(b"\n".join(line.read_bytes() for line in lines))
    report = ingest(open_workspace(tmp_path / "home").engine, [file])
    (line, empty) = report.gap_lines()
    assert line.startswith(f"{file}: no_messages: 4 of 4 model calls have no readable messages")
    assert "nothing_to_read: 2 traces hold names and times only" in empty
    assert report.warning_texts == []


def test_a_trace_is_found_by_its_mark(tmp_path: Path) -> None:
    engine = open_workspace(tmp_path / "home").engine
    ingest(
        engine, [write(tmp_path / "a.json", span("a")), write(tmp_path / "b.json", span("b", SAID), trace_id="cd" * 16)]
    )
    with read_transaction(engine) as connection:
        assert marked_traces(connection, "nothing_to_read") == ["ab" * 16]
        assert marked_traces(connection, "no_messages") == []
