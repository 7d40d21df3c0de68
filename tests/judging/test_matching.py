"""Proposals between human errors and judge findings."""

import pytest
from tests.build import error_label, finding, span_id

from tracejury.judging.matching.rule import Candidate, propose
from tracejury.judging.records import Citation, Dimension, Finding

PARENTS = {span_id(1): None, span_id(2): span_id(1), span_id(3): span_id(1), span_id(4): span_id(3)}


def candidates(*found: Finding, dimensions: tuple[Dimension, ...] = ("TC",)) -> list[Candidate]:
    return [Candidate(finding_id=n, finding=one, dimensions=frozenset(dimensions)) for n, one in enumerate(found, 1)]


def test_the_same_error_on_the_same_span_is_proposed_and_localized() -> None:
    (match,) = propose(
        [error_label()], candidates(finding("The tool does not know the day it is called with.", 4)), parents=PARENTS
    )
    assert (match.label_id, match.finding_id, match.localized, match.status) == ("label-1", 1, True, "proposed")
    assert "same span" in match.reasons


def test_a_parent_span_is_near_but_not_localized() -> None:
    found = finding("The tool is called with a day it does not know.", 3)
    (match,) = propose([error_label()], candidates(found), parents=PARENTS)
    assert not match.localized
    assert "parent or child span" in match.reasons


def test_the_same_words_in_another_place_are_caught_not_localized() -> None:
    found = finding("The tool is called with a day that it does not know.", 2)
    (match,) = propose([error_label()], candidates(found), parents={})
    assert not match.localized


def test_a_shared_span_alone_is_no_reason() -> None:
    found = finding("Cheerful greeting lacks punctuation.", 4)
    assert propose([error_label()], candidates(found, dimensions=("EE",)), parents=PARENTS) == []


def test_nothing_in_common_is_not_proposed() -> None:
    found = finding("Budget exceeded while sorting pears.", 2)
    assert propose([error_label()], candidates(found, dimensions=("PQ",)), parents=PARENTS) == []


def test_pairs_are_one_to_one_and_the_best_sum_wins() -> None:
    errors = [
        error_label(1, description="The search repeats the same query twice.", evidence=()),
        error_label(2, description="The answer names the wrong river.", evidence=()),
    ]
    found = candidates(finding("The final answer names a wrong river.", 4), finding("Same query searched twice.", 4))
    pairs = {(match.label_id, match.finding_id) for match in propose(errors, found, parents=PARENTS)}
    assert pairs == {("label-1", 2), ("label-2", 1)}


def test_an_unresolved_citation_localizes_nothing() -> None:
    found = Finding(
        description="The tool is called with a day it does not know.",
        evidence="",
        citations=(Citation(cite="S99", span_id=None),),
    )
    matches = propose([error_label()], candidates(found), parents=PARENTS)
    assert [match.localized for match in matches] == [False]


@pytest.mark.parametrize("text", ["", "the of and", "の、。"])
def test_texts_without_words_raise_nothing(text: str) -> None:
    errors = [error_label(description=text, evidence=())]
    propose(errors, candidates(finding(text, 4)), parents=PARENTS)


def test_no_errors_or_no_findings_give_no_pairs() -> None:
    assert propose([], candidates(finding("x", 1)), parents={}) == []
    assert propose([error_label()], [], parents={}) == []
