"""Test files that are named as long or as belonging together are there, and no test is lost on the way."""

import itertools
from pathlib import Path

import pytest

from tests.sharing import TOGETHER, in_order, missing, unit_of


def test_every_name_is_that_of_a_file(tmp_path: Path) -> None:
    assert missing(Path(__file__).parent) == []
    assert "browser/test_queue.py" in missing(tmp_path)


def test_files_of_one_unit_are_given_out_together_and_others_alone() -> None:
    for unit, names in TOGETHER.items():
        assert {unit_of(f"tests/{name.replace('/', '/test_')}.py::test_x[1]") for name in names} == {unit}
    assert unit_of("tests/browser/test_of_tomorrow.py::test_x") == "browser/samples"
    assert unit_of("tests/test_docs.py::TestA::test_b") == "test_docs.py"


def test_no_test_is_lost_in_the_order_and_a_unit_stays_whole(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    ordered = in_order(items[::-1])
    assert sorted(map(id, ordered)) == sorted(map(id, items))
    units = [unit_of(item.nodeid) for item in ordered]
    changes = 1 + sum(one != two for one, two in itertools.pairwise(units))
    assert changes == len(set(units))
