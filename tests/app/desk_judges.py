"""Judges' verdicts and another person's labels on a trace, made for the tests of blindness and reveal."""

from __future__ import annotations

from sqlalchemy import Connection, select

from tracejury.ingest.store import write_transaction
from tracejury.judging.labels.put_labels import put_labels
from tracejury.judging.records import (
    Call,
    Citation,
    ErrorLabel,
    Evidence,
    Failure,
    Finding,
    Review,
    ScoreLabel,
    Verdict,
)
from tracejury.judging.runs.verdicts import (
    JudgeVersion,
    add_cells,
    add_run,
    ensure_judge_version,
    finish_cell,
    set_run_status,
)
from tracejury.judging.store import Workspace
from tracejury.judging.store.tables import cell

JUDGE_MODEL = "marker-system/oracle-7"
MARKERS = (
    JUDGE_MODEL, "oracle-7", "MARKERRATIONALE", "MARKERCRITERIA", "MARKERFINDING", "MARKEREVIDENCE", "MARKERCITE",
    "MARKERCATEGORY", "MARKERRAW", "MARKERREASON", "MARKERRUN", "MARKEROTHER", "MARKERNOTE", "MARKERDETAIL",
    "zoe-the-other",
)  # fmt: skip
"""Strings that stand only in what judges and the other person said."""

OTHER = "zoe-the-other"


def judge(space: Workspace, trace_id: str, span_ids: tuple[str, str]) -> None:
    """One system's answers: LC with two findings (one cites a span that is none), EE unreadable."""
    findings = (
        Finding(
            description="MARKERFINDING one: three moons are one too many",
            evidence="Mars has three moons.",
            citations=(Citation(cite="S6", span_id=span_ids[0]), Citation(cite="S99 MARKERCITE", span_id=None)),
            dimension="LC",
            impact="high",
            category="MARKERCATEGORY",
            evidence_place="verbatim",
            evidence_span_id=span_ids[0],
        ),
        Finding(
            description="MARKERFINDING two: the tool failed and nobody looked",
            evidence="MARKEREVIDENCE stands nowhere",
            citations=(Citation(cite=span_ids[1], span_id=span_ids[1]),),
            dimension="EE",
            impact="low",
            evidence_place="not found",
        ),
    )
    call = Call(model=JUDGE_MODEL, raw_reply="MARKERRAW")
    verdict = Verdict(
        rubric="LC", trace_id=trace_id, state="scored", score=1, criteria="MARKERCRITERIA", rationale="MARKERRATIONALE",
        findings=findings, call=call,
    )  # fmt: skip
    failure = Failure(rubric="EE", trace_id=trace_id, state="unparsable", reason="MARKERREASON", call=call)
    with write_transaction(space.engine) as connection:
        run = add_run(connection, name="MARKERRUN", spec={"models": [JUDGE_MODEL]}, author="boss")
        for outcome in (verdict, failure):
            version = ensure_judge_version(
                connection, JudgeVersion(rubric=outcome.rubric, model=JUDGE_MODEL, rubric_version="1", mode="trace")
            )
            add_cells(connection, run, [(version, outcome.rubric, trace_id, 0)])
        for row, outcome in zip(_cells(connection, run), (verdict, failure), strict=True):
            finish_cell(connection, row, outcome)
        set_run_status(connection, run, "done", "MARKERDETAIL")


def _cells(connection: Connection, run: int) -> list[int]:
    return list(connection.scalars(select(cell.c.cell_key).where(cell.c.run_key == run).order_by(cell.c.cell_key)))


def other_person(space: Workspace, trace_id: str, span_id: str, *, submitted: bool = True) -> None:
    """Zoe's error and score; with `submitted` they said that they are done."""
    error = ErrorLabel(
        label_id=f"MARKEROTHER-{trace_id}",
        trace_id=trace_id,
        annotator=OTHER,
        span_ids=(span_id,),
        dimensions=("TC",),
        impact="medium",
        description="MARKEROTHER saw this",
        evidence=(Evidence(quote="three moons", span_id=span_id),),
    )
    score = ScoreLabel(trace_id=trace_id, annotator=OTHER, dimension="TC", value=2, note="MARKERNOTE")
    review = Review(trace_id=trace_id, annotator=OTHER, status="submitted" if submitted else "open")
    with write_transaction(space.engine) as connection:
        put_labels(connection, errors=[error], scores=[score], reviews=[review], author="test")
