"""Small traces made for the judge's tests, through the real assembly and the real reading."""

from tracejury.ingest.messages import MessageTable
from tracejury.ingest.trace import Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.judges.trace_text import TraceText, render_trace

PLAN = "Plan:\n1. Search for the length of both bridges.\n2. Subtract.\n3. Give the answer."
SEARCH_ERROR = "TimeoutError: the search service did not answer in 30 s"
CLAIM = "As the search showed, the North Bridge is 310 m long."
SPAN_IDS = ("00000000000000a1", "00000000000000b2", "00000000000000c3", "00000000000000d4")


def small_trace(*, trace_id: str = "0" * 31 + "1", agent: str = "manager", tool_output: str | None = None) -> Trace:
    """Four spans: the agent's run, a plan, a failing search, a claim without footing."""
    said = MessageTable()
    system = said.add("system", "You answer questions with tools.")
    question = said.add("user", "Which bridge is longer, and by how many metres?")
    plan = said.add("assistant", PLAN)
    claim = said.add("assistant", CLAIM)
    root, first, tool, last = SPAN_IDS
    drafts = [
        SpanDraft(span_id=root, name="CodeAgent.run", kind="AGENT", agent=agent, output="North Bridge, by 20 m",
                  status="OK", start_time=0, end_time=9_000_000),
        SpanDraft(span_id=first, parent_span_id=root, name="plan", kind="LLM", agent=agent, status="OK",
                  input_messages=(system, question), output_messages=(plan,), start_time=1, end_time=2),
        SpanDraft(span_id=tool, parent_span_id=root, name="search", kind="TOOL", agent=agent, tool_name="web_search",
                  tool_arguments='{"query": "bridge lengths"}', status="ERROR", status_message=SEARCH_ERROR,
                  output=tool_output, start_time=3, end_time=4),
        SpanDraft(span_id=last, parent_span_id=root, name="answer", kind="LLM", agent=agent, status="OK",
                  input_messages=(system, question, plan), output_messages=(claim,), start_time=5, end_time=6),
    ]  # fmt: skip
    return assemble(
        drafts,
        trace_id=trace_id,
        format="test",
        source=Source(file="small.json"),
        messages=said,
        goal="Which bridge is longer, and by how many metres?",
        final_answer="North Bridge, by 20 m",
    )


def small_reading(**changes: str) -> TraceText:
    return render_trace(small_trace(**changes))  # type: ignore[arg-type]
