"""GAIA2's own verdicts as tables: rates with their n, and a reason for every execution without a score."""

from dataclasses import replace
from pathlib import Path

from tests.build import small_trace, workspace

from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import read_transaction
from tracejury.ingest.trace import Outcome, Trace
from tracejury.judging.reports.benchmark_outcomes import outcome_tables

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples" / "gaia2"


def test_no_outcome_no_table(tmp_path: Path) -> None:
    with read_transaction(workspace(tmp_path).engine) as connection:
        assert outcome_tables(connection) == {}


def test_every_execution_is_scored_or_has_a_reason(tmp_path: Path) -> None:
    traces = [trace for trace in read_traces(SAMPLES) if isinstance(trace, Trace)]
    with read_transaction(workspace(tmp_path, *traces).engine) as connection:
        made = outcome_tables(connection)
    executions, rates = made["gaia2_executions"], made["gaia2_gsr"]
    of_all = rates[rates["capability"] == "all"]
    assert (executions["score"].notna() | executions["reason"].notna()).all()
    assert of_all["executions"].sum() == len(executions)
    assert of_all["scored"].sum() == executions["score"].notna().sum()


def test_an_unscored_execution_is_counted_and_in_no_rate(tmp_path: Path) -> None:
    def execution(number: int, score: float | None) -> Trace:
        reason = None if score is not None else "no judge was configured"
        outcome = Outcome(decision=None, score=score, reason=reason, rationale=None, source="test")
        return replace(small_trace(f"{number:032x}"), format="gaia2", outcome=outcome)

    with read_transaction(
        workspace(tmp_path, execution(1, 1.0), execution(2, 0.0), execution(3, None)).engine
    ) as connection:
        rates = outcome_tables(connection)["gaia2_gsr"].set_index("capability")
    assert rates.loc["all", ["executions", "scored", "succeeded", "gsr"]].tolist() == [3, 2, 1, 0.5]
