"""Attribute names whose dots became underscores, as OpenObserve, Elastic APM and X-Ray store them."""

from __future__ import annotations

import re
from functools import lru_cache

_FAMILIES = re.compile(
    r"_?(?P<root>gen_ai|llm|openinference|input|output|tool|retrieval|embedding|reranker|traceloop|langfuse|langsmith"
    r"|mlflow|ai|agent|session|graph|gcp_vertex_agent|haystack)_(?P<rest>\w+)"
)
_TOGETHER = re.compile(
    r"(?:input|output)_messages|token_count|model_name|tool_calls|tool_call_id|tool_call|mime_type|invocation_parameters"
    r"|(?:input|output|total|prompt|completion|reasoning|max|reasoning_output)_tokens|finish_reasons?|system_instructions"
    r"|json_schema|top_[kp]|prompt_template|all_messages|data_source|span_type|toolcall|function_call|usage_details"
    r"|observation_type|llm_request|llm_response|tool_response|event_id|parent_id"
)
"""Parts of names that have an underscore of their own."""
_NOT_TOGETHER = {"gen_ai": ("input_messages", "output_messages", "tool_call", "tool_call_id"), "ai": ("tool_call",)}
_OF_OPENOBSERVE = {
    "llm_input": "record.input", "llm_output": "record.output", "llm_observation_type": "record.type",
    "llm_model_name": "llm.model_name", "llm_usage_tokens_input": "llm.token_count.prompt",
    "llm_usage_tokens_output": "llm.token_count.completion", "llm_usage_tokens_total": "llm.token_count.total",
}  # fmt: skip
"""What OpenObserve itself adds to a span of a model."""


@lru_cache(maxsize=4096)
def dotted(name: str) -> str | None:
    """The name that an attribute had before its dots became underscores; None for one of no family known here."""
    bare = name.removeprefix("_o2_")
    if bare in _OF_OPENOBSERVE:
        return _OF_OPENOBSERVE[bare]
    if "." in name or (match := _FAMILIES.fullmatch(name)) is None:
        return None
    root, rest = match["root"], match["rest"]
    apart = _NOT_TOGETHER.get(root, ())

    def joined(part: re.Match[str]) -> str:
        return part[0] if part[0] in apart else part[0].replace("_", "\0")

    own = _TOGETHER.sub(joined, rest).replace("_", ".").replace("\0", "_")
    return f"{root.replace('gcp_vertex_agent', 'gcp.vertex.agent')}.{own}"
