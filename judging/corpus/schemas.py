"""The tables that checks add to a corpus."""

import pyarrow as pa

_TEXT = pa.string()
FINDINGS = pa.schema(
    [
        ("trace_id", _TEXT), ("dimension", _TEXT), ("position", pa.int32()), ("check_name", _TEXT),
        ("category", _TEXT), ("impact", _TEXT), ("description", _TEXT), ("evidence", _TEXT),
        ("evidence_place", _TEXT), ("evidence_span_id", _TEXT),
        ("citations", pa.list_(pa.struct([("cite", _TEXT), ("span_id", _TEXT)]))),
        ("agent", _TEXT), ("model", _TEXT), ("tool", _TEXT),
    ]
)  # fmt: skip
"""One row per finding; agent, model and tool are those of the first span that it cites, empty where that has none.

The tool of a model's span is the first that its answer calls.
"""
SCORES = pa.schema(
    [
        ("trace_id", _TEXT), ("dimension", _TEXT), ("state", _TEXT), ("score", pa.int8()), ("rationale", _TEXT),
        ("reason", _TEXT),
    ]
)  # fmt: skip
"""One row per trace and dimension; `score` is empty where the dimension does not apply or the checks failed."""
_NUMBER = pa.int64()
COUNTS = pa.schema(
    [
        ("facet", _TEXT), ("value", _TEXT), ("spans", _NUMBER), ("traces", _NUMBER), ("judged", _NUMBER),
        ("findings", _NUMBER), ("traces_with_findings", _NUMBER), ("rejected", _NUMBER),
    ]
)  # fmt: skip
"""One row per value of a facet in a partition; a column is empty where the facet does not count it.

`all` counts everything. `agent`, `model`, `tool` and `day` count spans and traces with the value, and findings whose
first cited span has it. `dimension` counts judged traces (answered, not failed) and findings of the dimension.
"""
SCHEMAS = {"findings": FINDINGS, "scores": SCORES, "counts": COUNTS}
