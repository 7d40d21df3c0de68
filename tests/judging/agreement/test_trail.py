"""TRAIL's official measures, their faults, and the pair-level estimates beside them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from tracejury.judging.agreement import trail

GOLD = pd.DataFrame(
    [
        ("t1", "Formatting Errors", "s1"),
        ("t1", "Goal Deviation", "s2"),
        ("t2", "Resource Abuse", "s3"),
    ],
    columns=["trace_id", "category", "location"],
)
TRACES = pd.DataFrame({"trace_id": ["t1", "t2", "t3"], "state": "scored"})


def predicted(*rows: tuple[str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["trace_id", "category", "location"])


def flooding(gold: pd.DataFrame, spans: pd.DataFrame) -> pd.DataFrame:
    """The prediction that wins the official scores: every span (trace_id, location) with every category."""
    categories = pd.DataFrame({"category": trail.CATEGORIES})
    traces = set(gold["trace_id"].astype(str))
    known = spans[spans["trace_id"].astype(str).isin(traces)]
    return known[["trace_id", "location"]].merge(categories, how="cross")


def measures(said: pd.DataFrame, traces: pd.DataFrame = TRACES, *, zeros: bool = False) -> dict[str, float]:
    table = trail.trail_table(GOLD, said, traces, draws=20).set_index("failures")
    return dict(table.loc[trail.AS_EMPTY if zeros else trail.LEFT_OUT])


def test_official_measures_are_recalls_averaged_over_traces() -> None:
    row = measures(predicted(("t1", "formatting errors", "s1"), ("t1", "Tool-related", "s2"), ("t2", "x", "s9")))
    # locations: t1 finds 2 of 2, t2 none of 1, t3 has no gold and scores 0; pairs: 1 of 2, 0 of 1
    assert row["location_accuracy"] == pytest.approx(1 / 3)
    assert row["joint_accuracy"] == pytest.approx(0.5 / 3)
    assert (row["pair_precision"], row["pair_recall"]) == (1 / 3, 1 / 3)
    assert (row["predictions"], row["reference_errors"], row["predictions_per_error"]) == (3, 3, 1.0)


def test_flooding_wins_the_official_measures_and_loses_the_pair_level_ones() -> None:
    spans = pd.DataFrame({"trace_id": ["t1"] * 3 + ["t2"] * 2, "location": ["s1", "s2", "s4", "s3", "s5"]})
    row = measures(flooding(GOLD, spans))
    # every gold pair is found; the empty gold of t3 keeps the ceiling at 2/3
    assert row["joint_accuracy"] == row["location_accuracy"] == pytest.approx(2 / 3)
    assert row["pair_recall"] == 1.0
    assert row["pair_precision"] == 3 / (5 * 21)
    assert row["pair_f1"] < 0.06
    assert row["predictions_per_error"] == 35.0


def test_a_perfect_judge_stays_below_1_where_gold_is_empty() -> None:
    row = measures(GOLD)
    assert row["joint_accuracy"] == pytest.approx(2 / 3)
    assert row["pair_f1"] == row["weighted_f1"] == 1.0


def test_unreadable_answers_are_empty_officially_and_left_out_below() -> None:
    traces = TRACES.assign(state=["scored", "unparsable", "scored"])
    said = GOLD[GOLD["trace_id"] == "t1"]
    readable, official = measures(said, traces), measures(said, traces, zeros=True)
    assert readable["joint_accuracy"] == 1 / 2  # of t1 and t3
    assert official["joint_accuracy"] == 1 / 3
    assert (readable["traces"], official["traces"], official["failed"]) == (2, 3, 1)
    assert (readable["pair_recall"], official["pair_recall"]) == (1.0, 2 / 3)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Formatting Errors", "Formatting Errors"),
        ("formattingerrors", "Formatting Errors"),
        ("Context Handling Failure", "Context Handling Failures"),  # contained in a label
        ("Language-Only", "Language-only"),
        ("Goal deviation", "Goal Deviation"),
        ("tool", "Tool-related"),  # faults of the official scorer, kept
        ("error", "Tool Selection Errors"),
        ("Task Orchestration Errors", "task orchestration errors"),
        ("Instruction non complience", "instruction non complience"),
        (" Incorrect Problem Identification", "Incorrect Problem Identification"),
        ("", ""),
    ],
)
def test_categories_are_read_as_the_official_scorer_reads_them(written: str, read: str) -> None:
    assert trail.normal_category(written) == read


def test_a_prediction_without_category_still_has_its_location() -> None:
    row = measures(predicted(("t1", "", "s1")))
    assert row["location_accuracy"] == pytest.approx(0.5 / 3)
    assert row["joint_accuracy"] == 0.0
    assert np.isnan(row["pair_precision"])


def test_weighted_f1_equals_scikit_learn_on_three_hundred_random_inputs() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        n = int(rng.integers(1, 6))
        gold, said = rng.random((2, n, 21)) < rng.random(2)[:, None, None] / 2
        theirs = f1_score(gold, said, average="weighted", zero_division=0)
        assert trail.weighted_f1(gold, said) == pytest.approx(theirs)


def test_trails_scores_correlate_as_written_and_constant_gold_is_undefined() -> None:
    scores = pd.DataFrame(
        {
            "trace_id": ["a", "b", "c", "d"] * 2,
            "scale": ["overall"] * 4 + ["security"] * 4,
            "reference_score": [1, 2.5, 4, 5, 5, 5, 5, 5],
            "judge_score": [1, 4.75, 3, None, 1, 2, 3, 4],
        }
    )
    table = trail.trail_correlations(scores).set_index("scale")
    assert table.loc["overall", "n"] == 3
    assert table.loc["overall", "pearson"] == pytest.approx(np.corrcoef([1, 2.5, 4], [1, 4.75, 3])[0, 1])
    assert np.isnan(table.loc["security", "pearson"])
    assert table.loc["security", "reason"] == "no variation"


def test_rows_of_unknown_traces_are_refused() -> None:
    with pytest.raises(ValueError, match=r"predicted names traces that `traces` lacks \(1 in all\), the first is 'zz'"):
        trail.trail_table(GOLD, predicted(("zz", "Goal Deviation", "s1")), TRACES)


def read_annotations(text: str) -> list[dict[str, str]] | None:
    """The errors of one annotation or prediction file, None when it cannot be read."""
    answer = text.rpartition("</think>")[2]
    try:
        listed = json.loads(answer[answer.index("{") : answer.rindex("}") + 1])["errors"]
    except (ValueError, KeyError, TypeError):
        return None
    return [e for e in listed if isinstance(e, dict)] if isinstance(listed, list) else None


def as_rows(trace: str, listed: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(trace, str(e.get("category") or ""), str(e.get("location") or "")) for e in listed]


@pytest.mark.shared
@pytest.mark.parametrize("dimension", ["o4-mini_GAIA", "gemini-2.5-flash_GAIA", "QwenLong-L1-32B_GAIA"])
def test_real_predictions_score_as_the_definitions_say(shared: Path, dimension: str) -> None:
    gold: dict[str, list[tuple[str, str, str]]] = {}
    for file in sorted((shared / "trail" / "annotations" / "gaia").iterdir()):
        listed = read_annotations(file.read_text(encoding="utf-8"))
        if listed is not None:  # the malformed gold file is skipped, as officially
            gold[file.stem] = as_rows(file.stem, listed)
    said: dict[str, list[tuple[str, str, str]]] = {}
    for file in (shared / "trail" / "predictions" / dimension).iterdir():
        listed = read_annotations(file.read_text(encoding="utf-8"))
        if listed is not None and file.stem in gold:
            said[file.stem] = as_rows(file.stem, listed)
    states = pd.DataFrame(
        {
            "trace_id": list(gold),
            "state": ["scored" if trace in said else "failed" for trace in gold],
        }
    )
    frame = predicted(*(row for rows in said.values() for row in rows))
    gold_frame = predicted(*(row for rows in gold.values() for row in rows))
    table = trail.trail_table(gold_frame, frame, states, draws=50).set_index("failures")
    readable, official = table.loc[trail.LEFT_OUT], table.loc[trail.AS_EMPTY]
    assert table.index.tolist() == [trail.AS_EMPTY, trail.LEFT_OUT]

    assert said, "no prediction could be read: this test would compare nothing"
    joint, location, bits = [], [], []
    for trace in gold:  # the script goes through the gold files: what it cannot read, it reads as `{"errors": []}`
        mine = said.get(trace, [])
        read = [{(at, trail.normal_category(what)) for _, what, at in rows if what} for rows in (gold[trace], mine)]
        places = [{at for _, _, at in rows if at} for rows in (gold[trace], mine)]
        joint.append(len(read[0] & read[1]) / len(read[0]) if read[0] else 0)
        location.append(len(places[0] & places[1]) / len(places[0]) if places[0] else 0)
        named = [{what for _, what in pairs} for pairs in read]
        bits.append([[label in names for label in trail.CATEGORIES] for names in named])
    assert official["joint_accuracy"] == pytest.approx(np.mean(joint))
    assert official["location_accuracy"] == pytest.approx(np.mean(location))
    array = np.array(bits)
    theirs = f1_score(array[:, 0], array[:, 1], average="weighted", zero_division=0)
    assert official["weighted_f1"] == pytest.approx(theirs)
    assert readable["joint_accuracy"] == pytest.approx(np.sum(joint) / len(said))
    assert readable["traces"] + readable["failed"] == len(gold) == official["traces"]


@pytest.mark.shared
def test_flooding_the_real_traces_reaches_the_ceiling(shared: Path) -> None:
    gold, spans = [], []
    for file in sorted((shared / "trail" / "annotations" / "gaia").iterdir()):
        listed = read_annotations(file.read_text(encoding="utf-8"))
        source = next((shared / "trail" / "traces").rglob(f"{file.stem}.json"), None)
        if listed is None or source is None:
            continue
        gold.append((file.stem, as_rows(file.stem, listed)))
        ids = set(re.findall(r'"span_id": "([0-9a-f]{16})"', source.read_text(encoding="utf-8")))
        spans += [(file.stem, span) for span in ids]
    frame = predicted(*(row for _, rows in gold for row in rows))
    flood = flooding(frame, pd.DataFrame(spans, columns=["trace_id", "location"]))
    states = pd.DataFrame({"trace_id": [trace for trace, _ in gold], "state": "scored"})
    row = trail.trail_table(frame, flood, states, draws=20).iloc[0]
    found = [  # per trace: the share of gold pairs that any prediction could name
        np.mean(
            [
                c in trail.CATEGORIES
                for c in {(at, trail.normal_category(w)): trail.normal_category(w) for _, w, at in rows}.values()
            ]
        )
        if rows
        else 0.0
        for _, rows in gold
    ]
    assert row["joint_accuracy"] == pytest.approx(np.mean(found))
    assert row["joint_accuracy"] > 0.9
    assert row["pair_precision"] < 0.02
