"""Means of what people do on a trace, summed by the database, against the values themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.build import span_id
from tests.judging.team import many_traces, op, send, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.agreement.intervals import mean_bounds
from tracejury.judging.reports.workload import COUNTS, workload
from tracejury.judging.store.people import ensure_annotator

SEEN = {"span_ids": [span_id(2)], "dimensions": ["TC"], "impact": "low"}


def test_errors_and_minutes_are_means_over_submitted_traces_with_their_interval(tmp_path: Path) -> None:
    space = many_traces(tmp_path / "home", 5)
    for number, made in enumerate((2, 0, 1)):
        labels = [{**SEEN, "label_id": f"{number}-{place}"} for place in range(made)]
        submit(space, "ada", trace_id(number), errors=labels)
        send(space, "ada", trace_id(number), op("review.put", status="submitted", active_ms=60_000 * (number + 1)))
    send(space, "ada", trace_id(0), op("error.delete", label_id="0-1"))  # one is left
    send(space, "ada", trace_id(3), op("error.put", **SEEN, label_id="draft"))  # not submitted: in no mean
    submit(space, "ben", trace_id(4))
    with write_transaction(space.engine) as connection:
        ensure_annotator(connection, "gold", kind="adjudicated")
    submit(space, "gold", trace_id(4))
    with read_transaction(space.engine) as connection:
        table = workload(connection).set_index("annotator")
    assert list(table.index) == ["ada", "ben"]  # the gold is nobody's work
    ada, ben = table.loc["ada"], table.loc["ben"]
    for name, values in (("errors_per_trace", [1, 0, 1]), ("minutes_per_trace", [1, 2, 3])):
        (low,), (high,) = mean_bounds(*(np.array([np.sum(np.power(values, power))]) for power in range(4)))
        assert ada[f"{name}_n"] == 3
        assert ada[name] == pytest.approx(np.mean(values))
        assert (ada[f"{name}_low"], ada[f"{name}_high"]) == pytest.approx((max(low, 0), high))
    assert ada[list(COUNTS)].tolist() == [3, 0, 3]  # the error of the open trace is one
    assert (ben["errors_per_trace"], ben["errors_per_trace_n"], ben["minutes_per_trace_n"]) == (0, 1, 0)
    assert ben[["errors_per_trace_low", "minutes_per_trace", "minutes_per_trace_high"]].isna().all()
