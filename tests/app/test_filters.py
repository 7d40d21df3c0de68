"""Filters, figures and names: what they say is what is computed, and nothing from outside becomes markup."""

from __future__ import annotations

import pandas as pd
import pytest
from sqlalchemy import update
from tests.app.workspaces import REPEATED

from tracejury.app import datasets, loading
from tracejury.app.components.figures import aligned, cell_text, definition, figure_text, plain, wide_table, with_labels
from tracejury.app.loading import Choice, SplitError
from tracejury.ingest.store import writing
from tracejury.judging.agreement.majority import MAJORITY
from tracejury.judging.agreement.tables import METRICS
from tracejury.judging.ledger import Workspace, tables

SPLIT = b'{"dev": ["a", "b"], "test": ["c"], "how": "by hand"}'


def test_a_split_file_is_kept_and_its_parts_can_be_chosen(empty: Workspace) -> None:
    assert loading.keep_split(SPLIT, "my split.json") == "my_split"
    assert loading.split_names() == ["my_split", "my_split:dev", "my_split:test"]
    assert loading.splits_of("my_split:test") == {"c": "test"}
    assert loading.splits_of("my_split") == {"a": "dev", "b": "dev", "c": "test"}


@pytest.mark.parametrize("name", ["../../etc/passwd.json", "/etc/passwd.json", "...json", "a/b.json"])
def test_a_split_file_stays_in_its_folder_whatever_it_is_called(empty: Workspace, name: str) -> None:
    stem = loading.keep_split(SPLIT, name)
    assert [file.name for file in loading.split_folder().iterdir()] == [f"{stem}.json"]


@pytest.mark.parametrize("name", ["nowhere", "../secret", "../../x:dev", ""])
def test_a_split_that_is_not_there_is_named(empty: Workspace, name: str) -> None:
    with pytest.raises(SplitError, match="There is no split file"):
        loading.splits_of(name)


def test_a_broken_split_file_is_refused_with_its_name(empty: Workspace) -> None:
    with pytest.raises(ValueError, match=r"s\.json: not JSON"):
        loading.keep_split(b"{", "s.json")
    assert loading.split_names() == []


def test_the_split_narrows_the_frames(full: Workspace) -> None:
    ids = list(loading.traces()["trace_id"])
    loading.keep_split(f'{{"dev": ["{ids[0]}", "{ids[1]}"]}}'.encode(), "s.json")
    pairs = loading.frames(Choice(split="s:dev")).error_pairs
    assert set(pairs["trace_id"]) <= {ids[0], ids[1]}
    assert set(pairs["split"]) == {"dev"}


def test_a_new_label_makes_the_frames_anew(full: Workspace) -> None:
    from tracejury.ingest.store import writing
    from tracejury.judging.ledger.labels import put_labels
    from tracejury.judging.records import ErrorLabel

    before = loading.frames(Choice(human="ada"))
    assert loading.frames(Choice(human="ada")) is before
    trace_id = before.error_pairs["trace_id"].iloc[0]
    label = ErrorLabel(
        label_id="one-more", trace_id=trace_id, annotator="ada", span_ids=("x",), dimensions=("LC",), impact="low"
    )
    with writing(full.engine) as connection:
        put_labels(connection, errors=[label], scores=[], reviews=[], author="test")
    assert "one-more" in set(loading.frames(Choice(human="ada")).error_pairs["error_id"])


def test_a_run_of_the_judge_can_be_chosen(full: Workspace) -> None:
    # RUN_SCORES: the third run failed on the first trace, so its score there is absent
    first = loading.frames(Choice(systems=(REPEATED,))).score_pairs
    third = loading.frames(Choice(systems=(REPEATED,), repeat=2)).score_pairs
    assert sorted(first["model"]) == [0, 0, 1, 2, 3, 3]
    assert sorted(third["model"].dropna()) == [0, 0, 1, 2, 3]
    assert list(third["state"]).count("failed") == 1


def test_data_of_another_format_enters_no_frame(full: Workspace) -> None:
    assert loading.options().formats == ("trail",)
    assert loading.frames(Choice(formats=("trail",))).error_pairs.equals(loading.frames(Choice()).error_pairs)
    other = loading.frames(Choice(formats=("gaia2",)))
    assert other.error_pairs.empty
    assert other.score_pairs.empty
    assert other.ratings.empty


def test_a_guideline_keeps_the_traces_whose_newest_review_was_made_under_it(full: Workspace) -> None:
    trace_id = loading.frames(Choice(human="ada")).error_pairs["trace_id"].iloc[0]
    review = tables.review
    mine = (review.c.annotator == "ada", review.c.trace_id == trace_id)
    with writing(full.engine) as connection:
        connection.execute(update(review).where(review.c.annotator == "ada").values(guideline_version="1"))
        connection.execute(update(review).where(*mine).values(guideline_version="2"))
    assert loading.options().guidelines[:2] == ("1", "2")
    under = loading.frames(Choice(human="ada", guideline="2"))
    assert set(under.error_pairs["trace_id"]) == {trace_id}
    assert trace_id not in set(loading.frames(Choice(human="ada", guideline="1")).error_pairs["trace_id"])
    assert set(datasets.labels(Choice(human="ada", guideline="2"))["trace_id"]) == {trace_id}


def test_versions_are_offered_by_words_and_set_beside_each_other(full: Workspace) -> None:
    words, version = next(item for item in loading.options().versions.items() if REPEATED in item[0])
    assert words == f"LC · {REPEATED} @{version[:6]}"
    pairs = loading.frames(Choice(versions=(version,))).score_pairs
    assert set(pairs["system"]) == {f"{REPEATED} @{version[:6]}"}
    assert (
        Choice(versions=(version,), repeat=1, formats=("trail",), guideline="2")
        .label()
        .endswith(f"judge versions: {version[:6]} · run 1 · data: trail · guideline version 2")
    )


def test_figures_have_fixed_decimals_rounded_half_up() -> None:
    assert figure_text(13 / 32, 0.25, 1.0, digits=4) == "0.4063 [0.2500, 1.0000]"
    assert figure_text(0.5) == "0.500"


def test_an_undefined_figure_names_its_reason_and_is_never_zero() -> None:
    row = {"value": float("nan"), "low": None, "high": None, "n": 0, "reason": "no positives"}
    assert cell_text(row) == "n/a: no positives"
    assert cell_text({**row, "value": 0.0, "n": 12, "reason": None}) == "0.000  n 12"


def test_few_units_and_undefined_cells_are_grey() -> None:
    long = pd.DataFrame(
        [("A", "recall", 0.5, 0.1, 0.9, 9, None), ("B", "recall", 0.5, 0.4, 0.6, 10, None),
         ("C", "recall", None, None, None, 50, "no positives")],
        columns=["judge", "metric", "value", "low", "high", "n", "reason"],
    )  # fmt: skip
    shown, grey = wide_table(long, ["recall", "f1"], ["judge"])
    assert list(shown["recall"]) == [
        "0.500 [0.100, 0.900]  n \u20079", "0.500 [0.400, 0.600]  n 10", "n/a: no positives",
    ]  # fmt: skip
    assert list(shown["f1"]) == ["–", "–", "–"]
    assert list(grey["recall"]) == [True, False, True]


def test_the_figures_of_a_column_stand_in_line_whatever_their_n() -> None:
    cells = ["0.500  n 9", "–", "0.250  n 1,024", "n/a: no positives"]
    assert aligned(cells) == ["0.500  n \u2007\u2008\u2007\u20079", "–", "0.250  n 1,024", "n/a: no positives"]
    assert aligned(["n/a: no positives"]) == ["n/a: no positives"]


def test_every_metric_has_a_definition_without_array_shapes() -> None:
    for metric in METRICS:
        text = definition(metric.name)
        assert text, metric.name
        assert "Shapes:" not in text or metric.name == "weighted_f1", metric.name


def test_a_judge_is_named_by_model_and_dimension_or_by_its_model_alone() -> None:
    frame = pd.DataFrame({"system": ["gpt", "gpt", ""], "judge": ["LC", "trail", "LC"]})
    assert list(with_labels(frame)["label"]) == ["gpt LC", "gpt", "LC"]


def test_a_name_cannot_make_a_picture_or_a_link() -> None:
    assert plain("![x](http://e.invalid)") == r"\!\[x\]\(http\://" + "\u2060" + r"e.invalid\)"
    assert plain("ada") == "ada"


def test_no_voter_stands_in_a_judges_place_beside_the_majority(full: Workspace) -> None:
    assert {side.words for side in loading.sides(["checks"], "ada")} >= {"checks", "person ben"}
    assert {side.words for side in loading.sides(["checks"], MAJORITY) if side.text.startswith("person=")} == set()
