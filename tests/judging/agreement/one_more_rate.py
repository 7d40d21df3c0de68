"""A process in which one more rate of errors was added, a function and a record: what must follow from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracejury.judging.agreement import error_rates
from tracejury.judging.agreement.intervals import Floats, divide


def specificity(cells: NDArray[np.generic]) -> Floats:
    """Share of the errors of others that the judge leaves alone: TN / (TN + FP)."""
    counts = np.asarray(cells, dtype=np.float64)
    return divide(counts[..., 3], counts[..., 1] + counts[..., 3])


RECORD = error_rates.ErrorMetric(
    name="specificity", title="Specificity", function=specificity, above=(0, 0, 0, 1), below=(0, 1, 0, 1),
    why=lambda tp, fp, fn, tn: "no negatives",
)  # fmt: skip


def add(record: error_rates.ErrorMetric) -> None:
    """As if it stood in the module, which no other has read yet."""
    metrics = (*error_rates.ERROR_METRICS, record)
    vars(error_rates).update(
        ERROR_METRICS=metrics, RATES=tuple(one.name for one in metrics), BY_RATE={one.name: one for one in metrics}
    )


def main() -> None:
    add(RECORD)
    from tests.judging.agreement.test_tables import small_inputs
    from tests.reference import metrics as lines_of_help

    from tracejury.app.components.judges import JUDGE_METRICS, metric_rows
    from tracejury.judging.agreement import errors
    from tracejury.judging.agreement.tables import tables_from_frames

    inputs = small_inputs()
    made = tables_from_frames(inputs, ["table_03_caught", "error_estimates", "error_ceiling"])
    assert {"specificity", "specificity_low", "specificity_high"} <= set(made["table_03_caught"].columns)
    own = made["error_estimates"].query("metric == 'specificity'")
    assert "ceiling" in own.columns
    assert (own["n"] == own["fp"] + own["tn"]).all()
    assert own["value"].notna().any()
    one_error = inputs.frame("error_pairs").query("relevant and dimension == 'LC'").head(1)
    alone = errors.error_estimates(errors.error_table(one_error, draws=0)).query("metric == 'specificity'")
    assert set(alone["reason"]) == {"no negatives"}
    assert "specificity" in set(made["error_ceiling"]["metric"])
    (shown,) = (one for one in JUDGE_METRICS if one.name == "caught.specificity")
    assert (shown.title, shown.metric.best, shown.metric.aim) == ("Specificity, caught", "high", 1.0)
    rows = metric_rows(inputs, shown)
    assert rows["value"].notna().any()
    words = "Share of the errors of others that the judge leaves alone: TN / (TN + FP)"
    assert f"| `specificity` | Specificity | {words} |" in lines_of_help()


if __name__ == "__main__":
    main()
