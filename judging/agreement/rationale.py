"""Whether a judge explains itself alike in every repeat: the Semantic Consistency Index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tracejury.judging.agreement import frames
from tracejury.judging.agreement.estimate import Estimate, present
from tracejury.judging.agreement.intervals import DRAWS, Floats, divide, fisher_bounds

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KEYS: Final = {"judge_model": "object", "dimension": "object", "split": "object"}


@dataclass(frozen=True, kw_only=True)
class Vectoriser:
    """Texts to vectors: `vectors` takes n texts and gives (n, d) sparse. `name` stands beside every estimate."""

    name: str
    vectors: Callable[[Sequence[str]], csr_array]


def tfidf() -> Vectoriser:
    """TF-IDF of character 3- to 5-grams within words, fitted on all rationales of the judge: no model, no network."""
    return Vectoriser(name="tfidf char_wb 3-5", vectors=_tfidf_vectors)


def wordllama() -> Vectoriser:
    """Local embeddings of the `embeddings` extra; raises ValueError when it is not installed.

    Weights come with the package: nothing is downloaded.
    """
    if find_spec("wordllama") is None:
        raise ValueError("local embeddings need the extra: pip install 'tracejury[embeddings]', or use tfidf")
    return Vectoriser(name="wordllama l2_supercat 256", vectors=_wordllama_vectors)


VectoriserName = Literal["tfidf", "wordllama"]
VECTORISERS: Final[dict[VectoriserName, Callable[[], Vectoriser]]] = {"tfidf": tfidf, "wordllama": wordllama}


def mean_pairwise_cosine(vectors: csr_array, groups: NDArray[np.int64]) -> Floats:
    """Mean cosine over the pairs of each group (groups,); NaN for a group of fewer than two.

    `vectors` (n, d) sparse, `groups` (n,) numbered from 0. The sum over pairs of unit vectors is (|Σv|² - n) / 2,
    so no pair is formed. A zero vector (a text without any known piece) has cosine 0 with every other.
    """
    from scipy.sparse import csr_array

    count = int(groups.max()) + 1 if len(groups) else 0
    norms = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    member = csr_array((scale, (groups, np.arange(len(groups)))), shape=(count, len(groups)))
    sums = csr_array(member @ vectors)
    squares = np.asarray(sums.multiply(sums).sum(axis=1)).ravel()
    own = np.bincount(groups, weights=(norms > 0).astype(np.float64), minlength=count)
    sizes = np.bincount(groups, minlength=count).astype(np.float64)
    return np.clip(divide(squares - own, sizes * (sizes - 1)), -1.0, 1.0)


def trace_consistency(rationales: pd.DataFrame, vectoriser: Vectoriser | None = None) -> pd.DataFrame:
    """Mean pairwise cosine of a judge's rationales over repeats, per trace.

    `rationales`: dimension, trace_id, repeat, text; optional judge_model, split. Missing and blank texts are left out.
    Columns: judge_model, dimension, split, trace_id, repeats (texts), cosine (NaN with fewer than two), vectoriser.
    """
    chosen = vectoriser if vectoriser is not None else tfidf()
    parts = []
    for (judge_model, dimension, split), part in _groups(rationales):
        group, traces = pd.factorize(part["trace_id"], sort=True)
        cosine = mean_pairwise_cosine(chosen.vectors(list(part["text"])), group.astype(np.int64))
        parts.append(
            pd.DataFrame(
                {
                    "judge_model": judge_model,
                    "dimension": dimension,
                    "split": split,
                    "trace_id": traces,
                    "repeats": np.bincount(group, minlength=len(traces)),
                    "cosine": cosine,
                    "vectoriser": chosen.name,
                }
            )
        )
    columns = {
        **KEYS,
        "trace_id": "object",
        "repeats": "int64",
        "cosine": "float64",
        "vectoriser": "object",
    }
    return pd.concat(parts, ignore_index=True).astype(columns) if parts else frames.empty(columns)


def consistency_index(cosines: Floats, *, draws: int = DRAWS) -> Estimate:
    """Semantic Consistency Index: the mean over traces of `trace_consistency`.

    Source: METRICS.md, reliability. Shapes: cosines (traces,), NaN where a trace has fewer than two rationales.
    Interval: `fisher_bounds`. Edge: no trace with two rationales is `fewer than two repeats`.
    """
    known = cosines[~np.isnan(cosines)]
    if len(known) == 0:
        return Estimate(value=None, n=0, reason="fewer than two repeats")
    if draws == 0:
        return Estimate(value=float(known.mean()), n=len(known))
    sums = np.stack([np.ones(len(known)), known], axis=1)
    low, high = fisher_bounds(sums, lambda s: divide(s[..., 1:], s[..., :1]), np.array([[-1.0, 1.0]]))
    return Estimate(value=float(known.mean()), n=len(known), low=present(float(low[0])), high=present(float(high[0])))


def rationale_columns() -> dict[str, str]:
    """Columns and types of `rationale_table`."""
    floats = dict.fromkeys(("sci", "sci_low", "sci_high"), "float64")
    return {**KEYS, "n": "int64", **floats, "reason": "object", "vectoriser": "object"}


def rationale_table(
    by_trace: pd.DataFrame,
    *,
    draws: int = DRAWS,
) -> pd.DataFrame:
    """The Semantic Consistency Index of each judge from `trace_consistency`: judge_model, dimension, split, n (traces),
    sci with bounds, vectoriser.
    """
    rows: list[dict[str, object]] = []
    for (judge_model, dimension, split), part in by_trace.groupby(list(KEYS), sort=False):
        estimate = consistency_index(part["cosine"].to_numpy(), draws=draws)
        rows.append(
            {
                "judge_model": judge_model,
                "dimension": dimension,
                "split": split,
                "n": estimate.n,
                "sci": estimate.value,
                "sci_low": estimate.low,
                "sci_high": estimate.high,
                "reason": estimate.reason,
                "vectoriser": part["vectoriser"].iloc[0],
            }
        )
    columns = rationale_columns()
    return pd.DataFrame(rows, columns=list(columns)).astype(columns) if rows else frames.empty(columns)


def _groups(rationales: pd.DataFrame) -> list[tuple[tuple[str, str, str], pd.DataFrame]]:
    frames.require(rationales, "rationales", frames.RATIONALES)
    long = frames.with_defaults(rationales, {"judge_model": frames.NO_JUDGE_MODEL, "split": frames.NO_SPLIT})
    for column in ("dimension", "trace_id", "repeat"):
        long[column] = long[column].astype(str)
    frames.require_unique(long, "rationales", ["judge_model", "dimension", "trace_id", "repeat"])
    long = long[long["text"].notna()]
    long = long[long["text"].astype(str).str.strip() != ""]
    places = long.groupby(["judge_model", "dimension", "split"], sort=False).indices
    order = [
        (judge_model, dimension, split)
        for judge_model in frames.in_order(long["judge_model"], ())
        for dimension in frames.in_order(long["dimension"], frames.DIMENSION_ORDER)
        for split in frames.in_order(long["split"], ("dev", "test"))
    ]
    return [(key, long.iloc[places[key]]) for key in order if key in places]


def _tfidf_vectors(texts: Sequence[str]) -> csr_array:
    """Equal texts give equal vectors. scikit-learn takes seconds to import, so it is imported here."""
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    fitted = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    return csr_array(fitted.fit_transform(texts))


def _wordllama_vectors(texts: Sequence[str]) -> csr_array:
    """The package's own files stand where its cache would: it looks for its tokenizer in a wrong folder."""
    import wordllama as package
    from scipy.sparse import csr_array

    model = package.WordLlama.load(cache_dir=Path(package.__file__).parent, disable_download=True)
    return csr_array(np.asarray(model.embed(list(texts), norm=True), dtype=np.float64))
