"""Files that stand beside traces and are none, by name: results, predictions, questions, metrics of evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from tracejury.ingest.parse import parse_documents
from tracejury.ingest.trace import IngestError, Json

_LABELS = "import it beside the traces that it judges (`tracejury labels import FILE`)"
_MESSAGES = 'write a row {"messages": [...]} for each conversation'
_LOOKED_AT = 20
"""So many documents of a file are looked at."""


class _Other(NamedTuple):
    """Fields by which a record is known, what it is, and what to do instead."""

    fields: frozenset[str]
    reason: str
    remedy: str


_KNOWN = (
    _Other(
        frozenset({"question_id", "answer_id", "choices"}),
        "answers of MT-bench, which hold no question",
        f"put each question of question.jsonl before its answer: {_MESSAGES}",
    ),
    _Other(frozenset({"question_id", "judge", "judgment"}), "judgments of MT-bench, which hold no trace", _LABELS),
    _Other(
        frozenset({"question_id", "category", "turns"}),
        "questions of MT-bench, which hold no answer",
        f"put each answer behind its question: {_MESSAGES}",
    ),
    _Other(
        frozenset({"doc_id", "arguments", "resps"}),
        "samples of lm-eval that compare how likely given answers are: no model wrote an answer",
        "ingest the samples of a task with `output_type: generate_until`",
    ),
    _Other(
        frozenset({"results", "configs", "versions"}),
        "results of lm-eval, which hold no sample",
        "ingest the files samples_*.jsonl, which `lm_eval --log_samples` writes beside it",
    ),
    _Other(
        frozenset({"run_id", "event_id", "sample_id", "type"}),
        "a log of OpenAI's evals without an event of type `sampling`: it holds no prompt and no answer",
        "run the evaluation again with a recorder that writes `sampling` events",
    ),
    _Other(
        frozenset({"instance_id", "model_patch"}),
        "predictions of SWE-bench, which hold a patch and not how the agent made it",
        "ingest the trajectories of the agent (SWE-agent's .traj, OpenHands' output.jsonl)",
    ),
    _Other(
        frozenset({"subtype", "result", "session_id", "num_turns"}),
        "what Claude Code answered last, without the session",
        "ingest the transcript (~/.claude/projects), or print the session with `--output-format stream-json --verbose`",
    ),
    _Other(
        frozenset({"task_id", "model_answer"}),
        "answers submitted to GAIA, which hold no question",
        "ingest the traces that the agent wrote (OpenTelemetry, its log or its messages)",
    ),
    _Other(
        frozenset({"resourceMetrics"}),
        "metrics of OpenTelemetry, which hold no span",
        "export the traces (`resourceSpans`) of the same program",
    ),
)


def known_file(data: bytes) -> IngestError | None:
    """Why a file of JSON holds no trace, where what it holds is known by name."""
    try:
        values = [one.value for one in islice(parse_documents(data), _LOOKED_AT) if one.error is None]
    except IngestError:
        return None
    records = [one for value in values for one in (value[:_LOOKED_AT] if isinstance(value, list) else [value])]
    return next((known for record in records if (known := known_other(record)) is not None), None)


def known_other(record: Json) -> IngestError | None:
    """Why a record holds no trace, where it is of a kind known by name."""
    fields = record.keys() if isinstance(record, Mapping) else frozenset()
    other = next((one for one in _KNOWN if one.fields <= fields), None)
    return None if other is None else IngestError(other.reason, place="the whole file", remedy=other.remedy)
