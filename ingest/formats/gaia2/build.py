"""The files of one execution as a trace: rows, expected events, outcome, and all that belongs to no row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.eventlog import condition_checks, replay_events
from tracejury.ingest.formats.gaia2.execution_outcome import (
    Evidence,
    error_of_execution,
    outcome,
    outcome_warnings,
    status_of,
)
from tracejury.ingest.formats.gaia2.export import Export, empty_export, refuse_not_executed
from tracejury.ingest.formats.gaia2.history import HistoryLog
from tracejury.ingest.formats.gaia2.lite import Lite, refuse_empty
from tracejury.ingest.formats.gaia2.oracle import expected_events, oracle_details
from tracejury.ingest.formats.gaia2.rows import Rows
from tracejury.ingest.formats.gaia2.setting import SETTING, are_setting
from tracejury.ingest.formats.gaia2.values import kept, text, without_empty, word
from tracejury.ingest.formats.gaia2.worldlog import WorldLog
from tracejury.ingest.times import from_seconds
from tracejury.ingest.trace import Json, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble

FORMAT = "gaia2"


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutionFiles:
    """What is at hand of one execution. Rows come from the gui file, else from lite and hf together, else from either.

    `evidence` is what a leaderboard row or output.jsonl says of the outcome, `attributes` the rest of them,
    `around` what the other executions of the benchmark say that this one shares.
    """

    trace_id: str
    gui: Export | None = None
    hf: Export | None = None
    lite: Lite | None = None
    evidence: tuple[Evidence, ...] = ()
    attributes: dict[str, Json] = field(default_factory=dict)
    around: dict[str, Json] = field(default_factory=dict)

    @property
    def form(self) -> str:
        parts = {"gui": self.gui, "hf": self.hf, "lite": self.lite}
        return "+".join(name for name, part in parts.items() if part is not None)

    @property
    def export(self) -> Export | None:
        return self.gui or self.hf


def execution_trace(execution: ExecutionFiles, source: Source) -> Trace:
    """The trace of an execution: its root alone where no more was left. Raises `IngestError` when none ever ran."""
    export = _export(execution)
    rows = _rows(execution, export)
    row = object_in(execution.attributes.get("row"))
    setting = are_setting(export, row, execution.around, trace_id=execution.trace_id, file=source.file)
    result = outcome(reduce(lambda one, other: one.joined(other), _evidence(execution)))
    rows.root.status = status_of(result)
    rows.root.status_message = error_of_execution(result)
    trace = assemble(
        rows.drafts,
        trace_id=execution.trace_id,
        format=FORMAT,
        source=source,
        messages=rows.messages,
        attributes={SETTING: setting.to_json(), **_attributes(execution, export, rows, setting.capability)},
        expected_events=expected_events(export),
        outcome=result,
        warnings=[*outcome_warnings(result), *_no_trace(execution, export), *_wrong_types(export)],
    )
    # Not left to `assemble`, which looks for an answer elsewhere: an execution that never wrote to its user has none.
    return replace(trace, goal=rows.goal, final_answer=rows.final_answer)


def _export(execution: ExecutionFiles) -> Export:
    """The file that the execution's rows come from; an empty one where a row or output.jsonl alone tells of it."""
    if execution.export is not None:
        refuse_not_executed(execution.export)
        return execution.export
    if execution.lite is not None:
        refuse_empty(execution.lite)
        return execution.lite.as_export()
    if not execution.evidence:
        raise ValueError("an execution needs a file")
    return empty_export(word(object_in(execution.attributes.get("row")).get("scenario_id")))


def _wrong_types(export: Export) -> list[str]:
    """The warnings of what happened; those of the plan might quote what the oracle expected."""
    return [warning for event in export.completed for warning in event.warnings]


def _no_trace(execution: ExecutionFiles, export: Export) -> list[str]:
    """Why the trace has no more than its root."""
    if execution.form == "":
        return ["no_trace: the execution left no trace; its status and score count"]
    if export.never_began and execution.lite is None:
        return ["no_trace: the execution raised before its first event; its status and score count"]
    return []


def _rows(execution: ExecutionFiles, export: Export) -> Rows:
    rows = Rows(word(export.definition.get("scenario_id")) or execution.trace_id, export.main_agent)
    if export.is_gui:
        WorldLog(export, rows).replay()
    elif execution.lite is not None and any(execution.lite.histories.values()):
        HistoryLog(export, rows, execution.lite).replay()
    else:
        replay_events(export, rows)
    rows.finish(from_seconds(export.definition.get("start_time")))
    return rows


def _evidence(execution: ExecutionFiles) -> Sequence[Evidence]:
    """The more telling first."""
    evidence = list(execution.evidence)
    if execution.lite is not None:
        evidence.append(execution.lite.evidence)
    return [*evidence, *(export_evidence(export) for export in (execution.hf, execution.gui) if export is not None)]


def export_evidence(export: Export) -> Evidence:
    """What a gui or hf file says of its outcome: the decision and an exception, but no rationale."""
    raised = export.definition.get("has_exception")
    return Evidence(
        source="gui" if export.is_gui else "hf",
        decision=word(export.annotation.get("validation_decision")),
        rationale=word(export.annotation.get("comment")),
        says_rationale=word(export.annotation.get("comment")) is not None,
        has_exception=raised if isinstance(raised, bool) else None,
        exception_type=text(export.definition.get("exception_type")),
        exception_message=text(export.definition.get("exception_message")),
        never_began=export.never_began,
        is_oracle=export.is_oracle_execution,
    )


def _attributes(execution: ExecutionFiles, export: Export, rows: Rows, capability: str | None) -> dict[str, Json]:
    """All of the files that is no row and no expected event, by the source's names."""
    covered = {"world_logs", "events", "completed_events"}
    plan: list[Json] = [kept(dict(event.raw)) for event in export.planned if not event.is_oracle]
    rest: list[Json] = [{"message": place, "rest": [*extra]} for place, extra in rows.message_rest.items()]
    return without_empty(
        {
            "capability": capability,
            "form": execution.form,
            **{key: value for key, value in export.raw.items() if key not in covered},
            "planned_events": plan,
            "oracle_details": oracle_details(export),
            "conditions": condition_checks(export),
            "message_rest": rest,
            "llm_usage_rest": rows.usage_rest,
            "lite": {} if execution.lite is None else execution.lite.attributes,
            "hf_metadata": _other_metadata(execution),
            "stopped_at_max_iterations": any(_is_at_maximum(draft) for draft in rows.drafts) or None,
            **execution.attributes,
        }
    )


def _is_at_maximum(draft: SpanDraft) -> bool:
    """Whether an agent was stopped at its last iteration."""
    return draft.kind == "AGENT" and "MaxIterationsAgentError" in (draft.status_message or "")


def _other_metadata(execution: ExecutionFiles) -> Json:
    """The metadata of the hf file where the gui file's, which the rows come from, differs."""
    if execution.gui is None or execution.hf is None:
        return None
    metadata = execution.hf.raw.get("metadata")
    return None if metadata == execution.gui.raw.get("metadata") else metadata
