"""Small traces made by hand for the tests of the annotator's desk."""

from tracejury.ingest.trace import Message, Source, SpanDraft, ToolCall, Trace
from tracejury.ingest.tree import assemble

EMOJI_CRLF_RTL = (
    "Start 😀 here.\r\nSecond line: שלום עולם! Third 👩‍👩‍👧 end.\r\nLast \u202ereversed\u202c and \x1b esc."
)
IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 40
SECOND = 1_000_000


def desk_trace(trace_id: str = "desk-trace") -> Trace:
    """A run with a plan, two model calls that share their history, a failing tool, odd text and an image."""
    messages = [
        Message("system", "You are a careful agent. " * 60),
        Message("user", "How many moons has Mars? Answer with a number."),
        Message("assistant", "Here is the plan:\n1. Search for the moons.\n2. Answer."),
        Message("assistant", None, (ToolCall("search", '{"query": "moons of Mars"}', "c1"),)),
        Message("tool", EMOJI_CRLF_RTL),
        Message("assistant", "Mars has three moons. I am sure. <img src=x onerror=alert(1)>"),
    ]
    spans = [
        SpanDraft(span_id="run0000000000001", name="Agent.run", kind="AGENT", agent="main", start_time=0,
                  end_time=9 * SECOND, output="3", status="OK"),
        SpanDraft(span_id="plan000000000002", parent_span_id="run0000000000001", name="Model.call", kind="LLM",
                  agent="main", start_time=0, end_time=2 * SECOND, input_messages=(0, 1), output_messages=(2,),
                  total_tokens=120, model="test/model-1", status="OK"),
        SpanDraft(span_id="call000000000003", parent_span_id="run0000000000001", name="Model.call", kind="LLM",
                  agent="main", start_time=2 * SECOND, end_time=4 * SECOND, input_messages=(0, 1, 2),
                  output_messages=(3,), total_tokens=80, status="OK"),
        SpanDraft(span_id="tool000000000004", parent_span_id="run0000000000001", name="SearchTool", kind="TOOL",
                  agent="main", start_time=4 * SECOND, end_time=5 * SECOND, tool_name="search",
                  tool_arguments='{"query": "moons of Mars", "limit": [1, 2]}', output=EMOJI_CRLF_RTL,
                  status="ERROR", status_message="TimeoutError: the service did not answer"),
        SpanDraft(span_id="odd0000000000005", parent_span_id="run0000000000001", name="odd", kind="TOOL",
                  agent="main", start_time=5 * SECOND, end_time=6 * SECOND, tool_name="shot",
                  output=f"before {IMAGE} after <script src=http://evil.example/x.js></script>", status="OK"),
        SpanDraft(span_id="last000000000006", parent_span_id="run0000000000001", name="Model.call", kind="LLM",
                  agent="main", start_time=6 * SECOND, end_time=9 * SECOND, input_messages=(0, 1, 2, 3, 4),
                  output_messages=(5,), total_tokens=200, status="OK"),
    ]  # fmt: skip
    return assemble(
        spans,
        trace_id=trace_id,
        format="made",
        source=Source(file="made-by-hand.json", data=trace_id.encode()),
        messages=messages,
        goal="How many moons has Mars?",
        final_answer="3",
    )


def spoken_trace(trace_id: str, words: str) -> Trace:
    """A model call that answers with `words`."""
    spans = [
        SpanDraft(span_id="run", name="run", kind="AGENT", start_time=0, end_time=SECOND),
        SpanDraft(span_id="call", parent_span_id="run", name="call", kind="LLM", start_time=0, output_messages=(0,)),
    ]
    return assemble(
        spans,
        trace_id=trace_id,
        format="made",
        source=Source(file="made-by-hand.json", data=trace_id.encode()),
        messages=[Message("assistant", words)],
    )


def long_trace(spans: int, trace_id: str = "long-trace") -> Trace:
    """A run of so many spans: steps of three, each with a model call and a tool call."""
    drafts = [SpanDraft(span_id="root", name="run", kind="AGENT", agent="main", start_time=0, end_time=spans * SECOND)]
    messages = []
    for number in range((spans - 1) // 3):
        at = number * 3 * SECOND
        step, model, tool = f"step{number:06d}", f"llm{number:06d}", f"tool{number:06d}"
        drafts.append(SpanDraft(span_id=step, parent_span_id="root", name=f"Step {number}", kind="CHAIN", agent="main",
                                start_time=at, end_time=at + 2 * SECOND))  # fmt: skip
        drafts.append(SpanDraft(span_id=model, parent_span_id=step, name="Model.call", kind="LLM", agent="main",
                                start_time=at, end_time=at + SECOND, output_messages=(number,)))  # fmt: skip
        drafts.append(SpanDraft(span_id=tool, parent_span_id=step, name="read", kind="TOOL", agent="main",
                                tool_name="read", start_time=at + SECOND, end_time=at + 2 * SECOND,
                                output=f"page {number} of the book"))  # fmt: skip
        messages.append(Message("assistant", f"I read page {number} now."))
    return assemble(
        drafts,
        trace_id=trace_id,
        format="made",
        source=Source(file="made-by-hand.json", data=trace_id.encode()),
        messages=messages,
        goal="Read the book",
    )


def huge_trace(trace_id: str = "huge-trace") -> Trace:
    """One tool span with 5 MB of output, which ends with a word that stands nowhere else."""
    output = "a line of the long log, ordinary\n" * 160_000 + "needle"
    drafts = [
        SpanDraft(span_id="root", name="run", kind="AGENT", agent="main"),
        SpanDraft(
            span_id="log", parent_span_id="root", name="log", kind="TOOL", agent="main", tool_name="log", output=output
        ),
    ]
    return assemble(
        drafts, trace_id=trace_id, format="made", source=Source(file="made-by-hand.json", data=trace_id.encode())
    )
