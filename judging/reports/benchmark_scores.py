"""Benchmark executions beside the judges' scores of their traces: means, and where both disagree; expected events."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tracejury.ingest.gsr import Execution
from tracejury.ingest.trace import Json, Trace

LOW, HIGH = 1.0, 2.0
"""A mean score at most `LOW` is low, one of at least `HIGH` is high (of 0 to 3)."""
EXECUTION_KEY = ("harness", "agent_model", "judge_model", "capability")


def execution_frame(executions: Sequence[Execution]) -> pd.DataFrame:
    """A row per execution that counts: its models, status, score (the harness's) and judge_score (its judge's)."""
    counted = [one for one in executions if one.counts]
    models = [(one.harness, one.agent_model or "", one.judge_model or "", one.group) for one in counted]
    rows = [
        (one.trace_id, *model, one.scenario, one.repeat, one.status, one.score, one.judge_score)
        for one, model in zip(counted, models, strict=True)
    ]
    columns = ["trace_id", *EXECUTION_KEY, "scenario", "repeat", "status", "score", "judge_score"]
    return pd.DataFrame(rows, columns=columns).astype({"repeat": "Int64", "score": "float64", "judge_score": "float64"})


def mean_scores(cells: pd.DataFrame) -> pd.DataFrame:
    """The mean score (0 to 3) of each trace by each judge model (`scorer`), over dimensions and repeats.

    `cells` are finished cells, the newest of each last: trace_id, judge_model, dimension, repeat, score.
    """
    newest = cells.drop_duplicates(["judge_model", "dimension", "trace_id", "repeat"], keep="last")
    scored = newest[newest["score"].notna()]
    by = scored.groupby(["trace_id", "judge_model"], sort=False)["score"]
    means = by.agg(mean_score="mean", scores="count").reset_index()
    return means.rename(columns={"judge_model": "scorer"})


def beside_scores(executions: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """A row an execution and a judge model that scored it."""
    return executions.merge(means, on="trace_id", how="inner")


def score_summary(beside: pd.DataFrame) -> pd.DataFrame:
    """By group of executions and judge model: mean score of those that succeeded and that failed, each with its n."""
    decided = beside[beside["judge_score"].notna()]
    rows = []
    for key, group in decided.groupby([*EXECUTION_KEY, "scorer"], sort=True):
        row = dict(zip([*EXECUTION_KEY, "scorer"], key, strict=True))
        for name, part in (
            ("succeeded", group[group["judge_score"] == 1]),
            ("failed", group[group["judge_score"] == 0]),
        ):
            row[f"{name}_executions"] = len(part)
            row[f"{name}_mean_score"] = part["mean_score"].mean() if len(part) else float("nan")
        rows.append(row)
    columns = [
        *EXECUTION_KEY,
        "scorer",
        "succeeded_executions",
        "succeeded_mean_score",
        "failed_executions",
        "failed_mean_score",
    ]
    return pd.DataFrame(rows, columns=columns)


def disagreements(beside: pd.DataFrame) -> pd.DataFrame:
    """Executions where benchmark and judge disagree: succeeded with a low mean score, or failed with a high one."""
    low = (beside["judge_score"] == 1) & (beside["mean_score"] <= LOW)
    high = (beside["judge_score"] == 0) & (beside["mean_score"] >= HIGH)
    rows = beside[low | high].copy()
    rows["why"] = ["succeeded, low score" if one == 1 else "failed, high score" for one in rows["judge_score"]]
    columns = ["trace_id", "capability", "agent_model", "scenario", "repeat", "scorer", "why", "mean_score", "scores"]
    return rows[columns].sort_values(["why", "mean_score"], kind="stable").reset_index(drop=True)


def expected_and_done(trace: Trace) -> pd.DataFrame:
    """What the scenario expected of the agent, in order, beside the call that the judge matched with it.

    `matched` is yes, or unknown: a file names what was matched, never what was not. Below stand the calls of the
    agent that nothing expected names.
    """
    done = {str(span.attributes.get("oracle_match")): span for span in trace.spans if span.kind == "TOOL"}
    rows: list[dict[str, Json]] = []
    for event in trace.expected_events:
        span = done.get(event.event_id)
        is_matched = event.matched is True or span is not None
        rows.append(
            {
                "turn": event.turn,
                "expected": "__".join(part for part in (event.app, event.function) if part),
                "matched": "yes" if is_matched else "unknown",
                "call": None if span is None else span.tool_name,
                "step": None if span is None else span.step,
            }
        )
    rows += [
        {"turn": span.turn, "expected": "", "matched": "", "call": span.tool_name, "step": span.step}
        for span in trace.spans
        if span.kind == "TOOL" and "oracle_match" not in span.attributes and not span.attributes.get("nested")
    ]
    frame = pd.DataFrame(rows, columns=["turn", "expected", "matched", "call", "step"])
    return frame.astype({"turn": "Int64", "step": "Int64"})
