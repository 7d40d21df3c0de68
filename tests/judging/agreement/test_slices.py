"""Agreement by slice: values by hand, nothing dropped in silence, counts that sum to the whole."""

import numpy as np
import pandas as pd
import pytest

from tracejury.judging.agreement import errors, scores
from tracejury.judging.agreement.compare import holm
from tracejury.judging.agreement.reliability import reliability_table
from tracejury.judging.agreement.slice_tests import compared_slices, recall_differences, slice_tests
from tracejury.judging.agreement.slices import (
    checked_slices,
    consistency_slices,
    error_slices,
    people_error_slices,
    people_slices,
    score_slices,
    slice_order,
)


def sliced(by: str, names: dict[str, str | None], **more: object) -> pd.DataFrame:
    return pd.DataFrame({"trace_id": list(names), "by": by, "slice": list(names.values())}).assign(**more)


def pairs(rows: list[tuple[str, bool, bool | None, str]], judge_model: str = "m") -> pd.DataFrame:
    """trace, relevant, caught, state."""
    return pd.DataFrame(
        [
            {
                "trace_id": trace, "error_id": f"{trace}-{place}", "impact": "low", "dimension": "LC",
                "judge_model": judge_model, "relevant": relevant, "caught": caught, "localized": False if caught is
                not None else None, "state": state,
            }
            for place, (trace, relevant, caught, state) in enumerate(rows)
        ]
    ).astype({"caught": object, "localized": object})  # fmt: skip


ROWS: list[tuple[str, bool, bool | None, str]] = [
    ("a", True, True, "scored"), ("a", True, False, "scored"), ("a", False, True, "scored"),
    ("b", True, True, "scored"), ("c", True, False, "scored"), ("c", True, None, "failed"),
    ("d", True, None, "not_matched"), ("d", True, True, "scored"),
]  # fmt: skip
AGENTS: dict[str, str | None] = {"a": "x", "b": "x", "c": "y"}  # of d nobody knows


def test_each_slice_has_its_own_rates_and_what_is_unknown_stands_last() -> None:
    table = error_slices(pairs(ROWS), sliced("agent", AGENTS), draws=100)
    caught = table[table["kind"] == "caught"]
    assert list(dict.fromkeys(caught["slice"])) == ["x", "y", "unknown"]
    recall, precision = (caught[caught["metric"] == name].set_index("slice") for name in ("recall", "precision"))
    assert recall["value"].tolist() == [2 / 3, 0.0, 1.0]
    assert recall["n"].tolist() == [3, 1, 1]
    assert recall["traces"].tolist() == [2, 1, 1]
    assert precision.loc["x", "value"] == 2 / 3
    assert np.isnan(precision.loc["y", "value"])
    assert precision.loc["y", "reason"] == "no positive predicted"
    assert (recall.loc["y", "failed"], recall.loc["unknown", "not_matched"]) == (1, 1)


def test_counts_of_slices_sum_to_those_of_all_errors() -> None:
    every = pd.concat([pairs(ROWS), pairs(ROWS[::-1], "n")], ignore_index=True)
    own = pd.concat([sliced("agent", AGENTS), sliced("length", {"a": "0-9 spans"})], ignore_index=True)
    table = error_slices(every, own, draws=0)
    whole = errors.error_estimates(errors.error_table(every, draws=0))
    counts = ["tp", "fp", "fn", "tn", "failed", "not_applicable", "not_matched"]
    keys = ["judge_model", "dimension", "split", "kind", "metric"]
    is_shown = (whole["impact"] == "all") & whole["metric"].isin(["precision", "recall", "f1"])
    total = whole[is_shown].set_index(keys)[counts]
    for _, part in table.groupby("by"):
        assert part.groupby(keys)[counts].sum().T.to_dict() == total.T.to_dict()
    assert table.groupby("by").ngroups == 2


def test_an_error_has_its_own_slice_where_slices_name_errors() -> None:
    kinds = pd.DataFrame({"trace_id": ["a", "a"], "error_id": ["a-0", "a-1"], "by": "kind", "slice": ["LLM", "TOOL"]})
    table = error_slices(pairs(ROWS), kinds, draws=0)
    recall = table[(table["kind"] == "caught") & (table["metric"] == "recall")].set_index("slice")
    assert recall["value"].to_dict() == {"LLM": 1.0, "TOOL": 0.0, "unknown": 2 / 3}
    assert score_slices(scored(["a"] * 1), kinds, draws=0).empty


def scored(traces: list[str], shift: int = 0) -> pd.DataFrame:
    reference = np.arange(len(traces)) % 4
    return pd.DataFrame(
        {
            "trace_id": traces, "dimension": "LC", "judge_model": "m", "reference_score": reference,
            "judge_score": (reference + shift) % 4,
        }
    )  # fmt: skip


def test_scores_by_slice_sum_to_the_whole_and_a_trace_of_two_tools_counts_in_both() -> None:
    traces = [f"t{n}" for n in range(12)]
    own = sliced("agent", {trace: "x" if n < 8 else "y" for n, trace in enumerate(traces)})
    tools = pd.concat([sliced("tool", dict.fromkeys(traces, "web")), sliced("tool", dict.fromkeys(traces[:4], "file"))])
    table = score_slices(scored(traces), pd.concat([own, tools], ignore_index=True), draws=0)
    bucketed = table[table["metric"] == "bucketed"].set_index(["by", "slice"])
    assert bucketed["n"].to_dict() == {
        ("agent", "x"): 8, ("agent", "y"): 4, ("tool", "file"): 4, ("tool", "web"): 12,
    }  # fmt: skip
    assert (bucketed["value"] == 1).all()
    whole = scores.score_estimates(scored(traces), draws=0)
    assert int(bucketed.loc["agent", "n"].sum()) == int(whole.loc[whole["metric"] == "bucketed", "n"].iloc[0])


def test_slices_are_read_by_number_then_name_and_unknown_last() -> None:
    names = ["unknown", "100+ spans", "web", "30-99 spans", "10-29 spans", "file", "0-9 spans"]
    assert slice_order(names) == ["0-9 spans", "10-29 spans", "30-99 spans", "100+ spans", "file", "web", "unknown"]


def test_an_error_in_two_slices_of_one_kind_is_refused() -> None:
    double = pd.DataFrame({"trace_id": "a", "error_id": "a-0", "by": "kind", "slice": ["LLM", "TOOL"]})
    with pytest.raises(ValueError, match="slices holds 1 duplicate rows"):
        checked_slices(double)


def judges(caught: dict[str, list[list[int]]]) -> pd.DataFrame:
    """By judge model the errors of each trace, 1 caught."""
    return pd.concat(
        [
            pairs([(f"t{n:02}", True, bool(one), "scored") for n, values in enumerate(rows) for one in values], name)
            for name, rows in caught.items()
        ],
        ignore_index=True,
    )


HALVES = {f"t{n:02}": "left" if n < 10 else "right" for n in range(20)}
NO_SCORES = pd.DataFrame(columns=["trace_id", "dimension", "reference_score", "judge_score"])


def test_a_slice_that_is_hard_for_all_is_a_difference_and_no_interaction() -> None:
    rng = np.random.default_rng(1)
    hard, as_hard = (
        [[int(rng.random() < (0.8 if n < 10 else 0.2)) for _ in range(4)] for n in range(20)] for _ in range(2)
    )
    odd = [[int(rng.random() < (0.2 if n < 10 else 0.8)) for _ in range(4)] for n in range(20)]
    alike = {"a": hard, "b": as_hard}
    table = slice_tests(judges(alike), NO_SCORES, sliced("agent", {**HALVES}))
    own = table[table["kind"] == "caught"]
    assert (own["p"] < 0.01).all()
    assert (own["p_interaction"] > 0.3).all()
    turned = slice_tests(judges({"a": hard, "b": odd}), NO_SCORES, sliced("agent", {**HALVES}))
    turned = turned[turned["kind"] == "caught"]
    assert (turned["p_interaction_holm"] < 0.01).all()
    assert turned["p_interaction_holm"].tolist() == holm(turned["p_interaction"].to_numpy()).tolist()
    assert (
        turned[["slices", "left_out", "traces", "n", "n_interaction"]].to_numpy().tolist() == [[2, 0, 20, 80, 80]] * 2
    )


def test_why_a_test_is_missing() -> None:
    one = judges({"a": [[1, 0]] * 20})
    table = slice_tests(one, NO_SCORES, sliced("agent", {**HALVES}), draws=99)
    assert set(table["reason"]) == {
        "p, p_holm: traces do not vary; p_interaction, p_interaction_holm: no other judge model"
    }
    few = slice_tests(one, NO_SCORES, sliced("agent", {"t00": "left"}), draws=99)
    assert few["slices"].tolist() == [1, 1]
    assert few["left_out"].tolist() == [1, 1]
    assert few["reason"].str.startswith("p, p_holm: fewer than two slices of 5 traces").all()


def test_a_judge_of_whom_nothing_is_known_stands_there_with_its_reason() -> None:
    waiting = pairs([(f"t{n:02}", True, None, "not_matched") for n in range(20)], "waits")
    outside = pairs([(f"t{n:02}", False, False, "scored") for n in range(20)], "asks for none")
    table = slice_tests(pd.concat([waiting, outside], ignore_index=True), NO_SCORES, sliced("agent", {**HALVES}))
    reasons = table[table["kind"] == "caught"].set_index("judge_model")["reason"].to_dict()
    every = "p, p_holm, p_interaction, p_interaction_holm"
    assert reasons == {
        "waits": f"{every}: no matches proposed yet",
        "asks for none": f"{every}: no positives",
    }


def rated(values: dict[str, list[list[float]]], kind: str = "judge", dimension: str = "LC") -> pd.DataFrame:
    """By rater group (judge model) the scores of each trace, one a rater."""
    return pd.DataFrame(
        [
            {"unit": f"t{n:02}", "trace_id": f"t{n:02}", "rater": f"{kind} {r}", "rater_kind": kind, "value": value,
             "dimension": dimension, "judge_model": name}
            for name, traces in values.items() for n, scores in enumerate(traces) for r, value in enumerate(scores)
        ]
    )  # fmt: skip


PARTS: dict[str, str | None] = {f"t{n:02}": "x" if n < 8 else "y" for n in range(16)}
UNSTEADY = [[n % 4, n % 4] for n in range(8)] + [[n % 3, n % 3 + n % 2] for n in range(8)]


def test_repeats_by_slice_are_those_of_the_slice_s_traces() -> None:
    ratings = rated({"m": UNSTEADY, "once": [[1.0]] * 16})
    table = consistency_slices(ratings, sliced("agent", PARTS)).set_index(["slice", "metric"])
    assert set(table["judge_model"]) == {"m"}  # one repeat has nothing to compare
    assert table.loc[("x", "alpha_interval"), ["value", "n"]].tolist() == [1.0, 8]
    for name, part in (("x", UNSTEADY[:8]), ("y", UNSTEADY[8:])):
        whole = reliability_table(rated({"m": part}), draws=1).iloc[0]
        for metric, of in (("alpha_interval", "alpha"), ("mean_sd", "mean_sd"), ("identical", "identical")):
            mine, wanted = table.loc[(name, metric)], [whole[metric], whole[f"{of}_low"], whole[f"{of}_high"]]
            assert mine[["value", "low", "high"]].astype(float).tolist() == pytest.approx(wanted, nan_ok=True)


def test_people_by_slice_are_those_of_the_slice_s_traces() -> None:
    people = rated({"people": UNSTEADY}, "annotator")
    table = people_slices(people, sliced("agent", PARTS)).set_index(["slice", "metric"])
    assert table.loc[("x", "exact"), ["value", "n"]].tolist() == [1.0, 8]
    assert table.loc[("y", "exact"), ["value", "n"]].tolist() == [0.5, 8]
    pairs_of_people = pd.DataFrame(
        [
            {"trace_id": trace, "error_id": f"{author} {trace}", "impact": "low", "author": author, "other": other,
             "reviewers": 2, "dimension": "any", "relevant": True, "caught": trace < "t04", "localized": False}
            for trace in PARTS for author, other in (("ann", "bob"), ("bob", "ann"))
        ]
    )  # fmt: skip
    errors_of = people_error_slices(pairs_of_people, sliced("agent", PARTS)).set_index(["slice", "kind", "metric"])
    assert errors_of.loc[("x", "caught", "recall"), ["value", "n", "traces"]].tolist() == [0.5, 16, 8]
    assert errors_of.loc[("y", "caught", "recall"), "value"] == 0


def test_repeats_and_people_are_tested_between_slices() -> None:
    """Repeats always agree in x and half of the time in y; of two judges that do so alike no interaction is seen."""
    people, other = rated({"people": UNSTEADY}, "annotator"), {"m": UNSTEADY, "n": UNSTEADY}
    ratings = pd.concat([rated(other), people], ignore_index=True)
    own = sliced("agent", PARTS)
    table = slice_tests(pairs(ROWS), scored(list(PARTS)), own, ratings, draws=500).set_index(["kind", "judge_model"])
    repeats, among = table.loc[("mean_sd", "m")], table.loc[("people", "people")]
    assert (repeats["n"], repeats["slices"], among["n"]) == (16, 2, 16)
    assert repeats["p"] < 0.1
    assert repeats["p_holm"] == pytest.approx(2 * repeats["p"])
    assert np.isnan(repeats["p_interaction"])
    assert "traces do not vary" in repeats["reason"]
    assert "no other judge model" in among["reason"]


def test_two_sides_differ_by_slice_and_the_test_is_of_their_differences() -> None:
    """In x both catch all; in y the left catches all and the right none."""
    left = judges({"left": [[1, 1]] * 16})
    right = judges({"right": [[1, 1]] * 7 + [[1, 0]] + [[0, 0]] * 7 + [[0, 1]]})
    table = compared_slices(left, right, sliced("agent", PARTS), draws=500)
    caught = table[table["kind"] == "caught"].set_index("slice")
    assert caught["difference"].to_dict() == pytest.approx({"x": 1 / 16, "y": 15 / 16})
    assert caught["n"].tolist() == [16, 16]
    assert (caught["p"] < 0.01).all()
    same = compared_slices(left, left, sliced("agent", PARTS), draws=500)
    assert same["p"].isna().all()
    assert same["reason"].str.contains("p, p_holm: traces do not vary").all()
    assert compared_slices(left, right.head(0), sliced("agent", PARTS)).empty


def test_the_slices_where_a_judge_catches_least_and_most_are_named_with_their_test() -> None:
    """m catches 1 of 8 errors of `short` and 7 of 8 of `long`; `odd` has two traces, too few for a test."""
    names = {
        f"{where}{trace}": where for where, number in (("short", 8), ("long", 8), ("odd", 2)) for trace in range(number)
    }
    rows = [(trace, True, (trace == "short0") or (where == "long" and trace != "long0"), "scored")
            for trace, where in names.items()]  # fmt: skip
    same = [(trace, True, int(trace[-1]) % 2 == 0, "scored") for trace in names]
    slices = pd.concat([sliced("length", names), sliced("agent", dict.fromkeys(names, "one"))])
    table = recall_differences(pd.concat([pairs(rows), pairs(same, "other")]), slices)
    assert table["by"].tolist() == ["length"] * 2  # one agent: nothing to test
    first, other = table.to_dict("records")
    assert [first[f"{end}{of}"] for end in ("low", "high") for of in ("_slice", "", "_n")] == [
        "short", 1 / 8, 8, "long", 7 / 8, 8,
    ]  # fmt: skip
    assert (first["low_slice"], first["p"] < 0.01, other["p"]) == ("short", True, 1.0)
    assert table["p_holm"].tolist() == holm(table["p"].to_numpy()).tolist()
    assert recall_differences(pairs(rows).assign(state="not_matched", caught=None, localized=None), slices).empty
