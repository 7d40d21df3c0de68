"""The Semantic Consistency Index of rationales."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import cosine_similarity

from tracejury.judging.agreement import rationale

ALIKE = "The agent repeats its search without using the answer of the first one."
OTHER = "No plan was written, and step four contradicts step two."


def rationales(texts: dict[str, list[str | None]], dimension: str = "LC") -> pd.DataFrame:
    rows = [
        {"dimension": dimension, "trace_id": trace, "repeat": run, "text": text}
        for trace, said in texts.items()
        for run, text in enumerate(said)
    ]
    return pd.DataFrame(rows)


def test_mean_pairwise_cosine_is_the_mean_over_pairs() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(0, 1, (12, 5))
    vectors[3] = 0
    groups = np.repeat([0, 1, 2], [3, 8, 1])
    found = rationale.mean_pairwise_cosine(csr_array(vectors), groups)
    for group in (0, 1):
        similar = cosine_similarity(vectors[groups == group])
        pairs = similar[np.triu_indices(len(similar), 1)]
        assert found[group] == pytest.approx(pairs.mean())
    assert np.isnan(found[2])


def test_equal_rationales_score_1_and_unlike_ones_little() -> None:
    table = rationale.trace_consistency(rationales({"t1": [ALIKE] * 3, "t2": [ALIKE, OTHER]}))
    cosine = table.set_index("trace_id")["cosine"]
    assert cosine["t1"] == pytest.approx(1.0)
    assert cosine["t2"] < 0.3


def test_the_index_is_the_mean_over_traces_with_two_rationales_and_names_its_vectoriser() -> None:
    texts = {"t1": [ALIKE, ALIKE], "t2": [OTHER, OTHER], "t3": [ALIKE], "t4": [None, " ", OTHER]}
    row = rationale.rationale_table(rationale.trace_consistency(rationales(texts)), draws=50).iloc[0]
    assert (row["n"], row["vectoriser"]) == (2, "tfidf char_wb 3-5")
    assert row["sci"] == pytest.approx(1.0)


def test_single_runs_have_no_index_but_a_reason() -> None:
    row = rationale.rationale_table(rationale.trace_consistency(rationales({"t1": [ALIKE], "t2": [OTHER]}))).iloc[0]
    assert (row["n"], row["reason"]) == (0, "fewer than two repeats")
    assert np.isnan(row["sci"])


def test_another_vectoriser_can_stand_in() -> None:
    length = rationale.Vectoriser(name="length", vectors=lambda t: csr_array([[float(len(x)), 1.0] for x in t]))
    table = rationale.rationale_table(rationale.trace_consistency(rationales({"t1": [ALIKE, OTHER]}), length), draws=0)
    assert table.iloc[0]["vectoriser"] == "length"
    assert table.iloc[0]["sci"] > 0.99


def test_the_interval_is_over_traces() -> None:
    rng = np.random.default_rng(2)
    estimate = rationale.consistency_index(rng.uniform(0.4, 1, 60))
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < (estimate.value or 0) < estimate.high
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * 0.6 / 12**0.5 / 60**0.5, rel=0.2)


@pytest.mark.skipif(find_spec("wordllama") is not None, reason="the extra is installed here")
def test_embeddings_without_the_extra_name_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"tracejury\[embeddings\]"):
        rationale.wordllama()


@pytest.mark.skipif(find_spec("wordllama") is None, reason="the extra `embeddings` is not installed")
def test_embeddings_see_meaning_without_a_network() -> None:
    texts = {"t1": ["The agent searched twice.", "It repeated its search."], "t2": ["The agent searched twice.", "42"]}
    table = rationale.trace_consistency(rationales(texts), rationale.wordllama()).set_index("trace_id")
    assert table.loc["t1", "cosine"] > table.loc["t2", "cosine"]
    assert table.loc["t1", "vectoriser"] == "wordllama l2_supercat 256"
