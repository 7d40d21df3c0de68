"""An export as a trace: rows, expected events, outcome, and all that belongs to the run and to no row."""

from __future__ import annotations

from ingest.formats.gaia2.eventlog import condition_checks, replay_events
from ingest.formats.gaia2.export import Export, refuse_unrun
from ingest.formats.gaia2.oracle import expected_events, oracle_details
from ingest.formats.gaia2.rows import Rows
from ingest.formats.gaia2.values import kept, text, without_empty, word
from ingest.formats.gaia2.verdict import Evidence, outcome, outcome_warnings, status_of
from ingest.formats.gaia2.worldlog import WorldLog
from ingest.times import from_seconds
from ingest.trace import Json, Source, Trace
from ingest.tree import assemble

FORMAT = "gaia2"


def export_trace(
    export: Export,
    *,
    trace_id: str,
    source: Source,
    evidence: Evidence | None = None,
    extra: dict[str, Json] | None = None,
) -> Trace:
    """The trace of a gui or hf file. `evidence` is what other files say of its outcome, `extra` more attributes.

    Raises `IngestError` for a scenario that never ran.
    """
    refuse_unrun(export)
    rows = Rows(word(export.definition.get("scenario_id")) or trace_id, export.main_agent)
    if export.is_gui:
        WorldLog(export, rows).replay()
    else:
        replay_events(export, rows)
    rows.finish(from_seconds(export.definition.get("start_time")))
    return rows_trace(rows, export, trace_id=trace_id, source=source, evidence=evidence, extra=extra)


def rows_trace(
    rows: Rows,
    export: Export,
    *,
    trace_id: str,
    source: Source,
    evidence: Evidence | None,
    extra: dict[str, Json] | None,
) -> Trace:
    """The trace of finished rows, with what the export says of outcome and expectations."""
    own = export_evidence(export)
    rest: list[Json] = [{"message": place, "rest": [*found]} for place, found in rows.message_rest.items()]
    result = outcome(own if evidence is None else evidence.joined(own))
    rows.root.status = status_of(result)
    rows.root.status_message = result.rationale or result.exception_message
    return assemble(
        rows.drafts,
        trace_id=trace_id,
        format=FORMAT,
        source=source,
        messages=rows.messages,
        goal=rows.goal,
        final_answer=rows.final_answer,
        attributes=export_attributes(export) | without_empty({"message_rest": rest}) | (extra or {}),
        expected_events=expected_events(export),
        outcome=result,
        warnings=outcome_warnings(result),
    )


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
    )


def export_attributes(export: Export) -> dict[str, Json]:
    """All of the file that is no row and no expected event, by the source's names."""
    covered = {"world_logs", "events", "completed_events"}
    plan: list[Json] = [kept(dict(event.raw)) for event in export.planned if not event.is_oracle]
    return without_empty(
        {
            "capability": export.capability,
            "form": "gui" if export.is_gui else "hf",
            **{key: value for key, value in export.raw.items() if key not in covered},
            "planned_events": plan,
            "oracle_details": oracle_details(export),
            "conditions": condition_checks(export),
        }
    )
