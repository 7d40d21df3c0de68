"""Every browser file has its unit, and what is named is there."""

import itertools
from pathlib import Path

import pytest

from tests.sharing import TOGETHER, in_order, unit_of, wrong_names


def test_every_browser_file_has_a_unit_and_every_name_a_file() -> None:
    assert wrong_names(Path(__file__).parent) == []


def test_files_of_one_unit_are_given_out_together_and_others_alone() -> None:
    desk = {unit_of(f"tests/browser/test_{name}.py::test_x[1]") for name in TOGETHER["browser/desk"]}
    assert desk == {"browser/desk"}
    assert unit_of("tests/test_docs.py::TestA::test_b") == "test_docs.py"


def test_no_test_is_lost_in_the_order_and_a_unit_stays_whole(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    ordered = in_order(items[::-1])
    assert sorted(map(id, ordered)) == sorted(map(id, items))
    units = [unit_of(item.nodeid) for item in ordered]
    changes = 1 + sum(one != two for one, two in itertools.pairwise(units))
    assert changes == len(set(units))
