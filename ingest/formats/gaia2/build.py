"""The files of one execution as a trace: rows, expected events, outcome, and all that belongs to no row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from tracejury.ingest.formats.gaia2.eventlog import condition_checks, replay_events
from tracejury.ingest.formats.gaia2.export import Export, empty_export, refuse_unrun
from tracejury.ingest.formats.gaia2.history import HistoryLog
from tracejury.ingest.formats.gaia2.lite import Lite, refuse_empty
from tracejury.ingest.formats.gaia2.oracle import expected_events, oracle_details
from tracejury.ingest.formats.gaia2.rows import Rows
from tracejury.ingest.formats.gaia2.setting import SETTING, are_setting
from tracejury.ingest.formats.gaia2.values import kept, mapping, text, without_empty, word
from tracejury.ingest.formats.gaia2.verdict import Evidence, error_of_run, outcome, outcome_warnings, status_of
from tracejury.ingest.formats.gaia2.worldlog import WorldLog
from tracejury.ingest.times import from_seconds
from tracejury.ingest.trace import Json, Source, SpanDraft, Trace
from tracejury.ingest.tree import assemble

FORMAT = "gaia2"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
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


def run_trace(run: Run, source: Source) -> Trace:
    """The trace of an execution: its root alone where no more was left. Raises `IngestError` when none ever ran."""
    export = _export(run)
    rows = _rows(run, export)
    row = mapping(run.attributes.get("row"))
    setting = are_setting(export, row, run.around, trace_id=run.trace_id, file=source.file)
    result = outcome(reduce(lambda one, other: one.joined(other), _evidence(run)))
    rows.root.status = status_of(result)
    rows.root.status_message = error_of_run(result)
    trace = assemble(
        rows.drafts,
        trace_id=run.trace_id,
        format=FORMAT,
        source=source,
        messages=rows.messages,
        attributes={SETTING: setting.to_json(), **_attributes(run, export, rows, setting.capability)},
        expected_events=expected_events(export),
        outcome=result,
        warnings=[*outcome_warnings(result), *_no_trace(run, export), *_wrong_types(export)],
    )
    # Not left to `assemble`, which looks for an answer elsewhere: an execution that never wrote to its user has none.
    return replace(trace, goal=rows.goal, final_answer=rows.final_answer)


def _export(run: Run) -> Export:
    """The file that the execution's rows come from; an empty one where a row or output.jsonl alone tells of it."""
    if run.export is not None:
        refuse_unrun(run.export)
        return run.export
    if run.lite is not None:
        refuse_empty(run.lite)
        return run.lite.as_export()
    if not run.evidence:
        raise ValueError("an execution needs a file")
    return empty_export(word(mapping(run.attributes.get("row")).get("scenario_id")))


def _wrong_types(export: Export) -> list[str]:
    """The warnings of what happened; those of the plan might quote what the oracle expected."""
    return [warning for event in export.completed for warning in event.warnings]


def _no_trace(run: Run, export: Export) -> list[str]:
    """Why the trace has no more than its root."""
    if run.form == "":
        return ["no_trace: the execution left no trace; its status and score count"]
    if export.never_began and run.lite is None:
        return ["no_trace: the execution raised before its first event; its status and score count"]
    return []


def _rows(run: Run, export: Export) -> Rows:
    rows = Rows(word(export.definition.get("scenario_id")) or run.trace_id, export.main_agent)
    if export.is_gui:
        WorldLog(export, rows).replay()
    elif run.lite is not None and any(run.lite.histories.values()):
        HistoryLog(export, rows, run.lite).replay()
    else:
        replay_events(export, rows)
    rows.finish(from_seconds(export.definition.get("start_time")))
    return rows


def _evidence(run: Run) -> Sequence[Evidence]:
    """The more telling first."""
    evidence = list(run.evidence)
    if run.lite is not None:
        evidence.append(run.lite.evidence)
    return [*evidence, *(export_evidence(export) for export in (run.hf, run.gui) if export is not None)]


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
        is_oracle=export.is_oracle_run,
    )


def _attributes(run: Run, export: Export, rows: Rows, capability: str | None) -> dict[str, Json]:
    """All of the files that is no row and no expected event, by the source's names."""
    covered = {"world_logs", "events", "completed_events"}
    plan: list[Json] = [kept(dict(event.raw)) for event in export.planned if not event.is_oracle]
    rest: list[Json] = [{"message": place, "rest": [*extra]} for place, extra in rows.message_rest.items()]
    return without_empty(
        {
            "capability": capability,
            "form": run.form,
            **{key: value for key, value in export.raw.items() if key not in covered},
            "planned_events": plan,
            "oracle_details": oracle_details(export),
            "conditions": condition_checks(export),
            "message_rest": rest,
            "llm_usage_rest": rows.usage_rest,
            "lite": {} if run.lite is None else run.lite.attributes,
            "hf_metadata": _other_metadata(run),
            "stopped_at_max_iterations": any(_is_at_maximum(draft) for draft in rows.drafts) or None,
            **run.attributes,
        }
    )


def _is_at_maximum(draft: SpanDraft) -> bool:
    """Whether an agent was stopped at its last iteration."""
    return draft.kind == "AGENT" and "MaxIterationsAgentError" in (draft.status_message or "")


def _other_metadata(run: Run) -> Json:
    """The metadata of the hf file where the gui file's, which the rows come from, differs."""
    if run.gui is None or run.hf is None:
        return None
    metadata = run.hf.raw.get("metadata")
    return None if metadata == run.gui.raw.get("metadata") else metadata
