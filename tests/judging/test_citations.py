"""Citations: which spans a judge names, in every way that judges write them, and what names nothing."""

import pytest

from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import Source, SpanDraft, ToolCall
from tracejury.ingest.tree import assemble
from tracejury.judging.judges.citations import cites_in_field, cites_in_prose, resolve_citations
from tracejury.judging.judges.trace_text import TraceText, render_trace

CALL, LOST = "call_Ab12Cd34", "functions.dig:0"


@pytest.fixture(scope="module")
def reading() -> TraceText:
    """Nine spans in a row; S2 asks for two tool calls, of which S3 runs the first."""
    table = MessageTable()
    asked = table.add("assistant", "I look.", (ToolCall("look", "{}", CALL), ToolCall("dig", "{}", LOST)))
    drafts = [SpanDraft(span_id=f"{number:02}42ca2533fac5b{number}", start_time=number) for number in range(1, 10)]
    drafts[1].kind, drafts[1].output_messages = "LLM", (asked,)
    drafts[2].kind, drafts[2].tool_call_id = "TOOL", CALL
    return render_trace(assemble(drafts, trace_id="1" * 32, format="test", source=Source(file="t"), messages=table))


def spans(reading: TraceText, *cites: str) -> list[int | None]:
    """The numbers of the spans that citations resolve to, None where one names nothing."""
    numbers = {block.span_id: block.seq + 1 for block in reading.blocks}
    return [None if c.span_id is None else numbers[c.span_id] for c in resolve_citations(cites, reading)]


@pytest.mark.parametrize(
    ("cite", "expected"),
    [
        ("S3", [3]),
        ("[S3]", [3]),
        ("span S3", [3]),
        ("step S3", [3]),
        ("Ｓ３", [3]),
        ("S3\u200b", [3]),
        ("S3-S5", [3, 4, 5]),
        ("S3-5", [3, 4, 5]),
        ("S3 - S5", [3, 4, 5]),
        ("S3–S5", [3, 4, 5]),
        ("S3—S5", [3, 4, 5]),
        ("S3..S5", [3, 4, 5]),
        ("S3...S5", [3, 4, 5]),
        ("S3 to S5", [3, 4, 5]),
        ("S3 through S5", [3, 4, 5]),
        ("[S3]-[S5]", [3, 4, 5]),
        ("[S3-S5]", [3, 4, 5]),
        ("(S3-S5)", [3, 4, 5]),
        ("spans S3-S5", [3, 4, 5]),
        ("S5-S3", [3, 4, 5]),
        ("s3-s4", [3, 4]),
        ("S3, S4", [3, 4]),
        ("S3,S4", [3, 4]),
        ("S3; S4", [3, 4]),
        ("S3 and S4", [3, 4]),
        ("S3, S4, and S6", [3, 4, 6]),
        ("S3 & S4", [3, 4]),
        ("S3/S4", [3, 4]),
        ("S3 S4", [3, 4]),
        ("[S3, S4]", [3, 4]),
        ("[S3], [S4]", [3, 4]),
        ("S1, S3-S5, S9", [1, 3, 4, 5, 9]),
        ("S3, span S4", [3, 4]),
        ("0x0342ca2533fac5b3", [3]),
        ("0X0342CA2533FAC5B3", [3]),
        ("span 0x0342ca2533fac5b3", [3]),
        ("0x0342ca25..", [3]),
        ("0x0342ca2533fac5b3, 0x0442ca2533fac5b4", [3, 4]),
        ("0342ca2533fac5b3 and S4", [3, 4]),
        (CALL, [3]),
        (f"[{CALL}]", [3]),
        (f"tool call {CALL}", [3]),
        (f"tool_call_id: {CALL}", [3]),
        (f"tool_call_id={CALL}", [3]),
        (f"{CALL}, S4", [3, 4]),
        (LOST, [2]),
        (f"S1, {LOST}", [1, 2]),
        ("S3 (the search)", [3]),
        ("[S3] TOOL search | span 0342ca2533fac5b3 | in S1 | OK", [3]),
    ],
)
def test_each_way_of_citing_names_its_spans(reading: TraceText, cite: str, expected: list[int]) -> None:
    assert spans(reading, cite)[: len(expected)] == expected
    assert set(spans(reading, cite)) == set(expected)


@pytest.mark.parametrize(
    "cite",
    ["", "S0", "S99", "S98-S99", "0xdeadbeefdeadbeef", "0x03", "call_unknown", "the S3 bucket", "nowhere", "3", "S3.5",
     "3-5", "S", "see above"],
)  # fmt: skip
def test_what_names_nothing_stays_one_unresolved_citation_as_it_was_written(reading: TraceText, cite: str) -> None:
    assert [(c.cite, c.span_id) for c in resolve_citations([cite], reading)] == [(cite, None)]


def test_of_a_list_what_names_nothing_is_unresolved_by_itself(reading: TraceText) -> None:
    assert spans(reading, "S3, S99") == [3, None]
    assert [c.cite for c in resolve_citations(["S3, S99"], reading)] == ["S3", "S99"]


def test_a_range_that_leaves_the_trace_names_its_ends_alone(reading: TraceText) -> None:
    assert spans(reading, "S7-S99") == [7, None]


def test_a_field_is_split_and_its_ranges_stay_whole() -> None:
    assert cites_in_field("[S1, S3 - S5; 0242ca2533f..]") == ("S1", "S3-S5", "0242ca2533f..")


def test_prose_mentions_ranges_ids_and_tool_calls() -> None:
    text = "S1 plans, S3-S5 repeat it (0242ca2533fac5b8), and call_Ab12Cd34 fails in S1."
    assert cites_in_prose(text) == ("S1", "S3-S5", "0242ca2533fac5b8", "call_Ab12Cd34")
