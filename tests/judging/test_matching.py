"""Proposals between human errors and judge findings."""

from dataclasses import replace

import pytest
from tests.build import error_label, finding, span_id

from tracejury.judging.matching.rule import Candidate, SpanTree, propose
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
    assert "parent, child or sibling span" in match.reasons


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


def test_one_event_in_other_words_under_a_related_category_is_proposed() -> None:
    error = error_label(description="The task was printed.", category="Tool Selection Errors", evidence=())
    found = replace(finding("Search agent never invoked.", 4), category="Instruction Non-compliance")
    (match,) = propose([error], candidates(found), parents=PARENTS)
    assert {"same span", "related category"} <= set(match.reasons)
    elsewhere = replace(found, category="Rate Limiting")
    assert propose([error], candidates(elsewhere), parents=PARENTS) == []


def test_a_proposal_depends_on_nothing_but_the_trace_the_error_and_the_finding() -> None:
    same = finding("The tool does not know the day it is called with.", 4)
    (alone,) = propose([error_label()], candidates(same), parents=PARENTS)
    other = finding("Budget exceeded while sorting pears.", 2)
    among = propose([error_label()], candidates(same, other, dimensions=("TC",)), parents=PARENTS)
    assert among == [alone]


def test_closeness_falls_in_reading_order_and_steps_above_are_around() -> None:
    tree = SpanTree(PARENTS)
    falling = [tree.closeness(span_id(1), span_id(n)) for n in (1, 2, 3, 4, 9)]
    assert falling[0] == 1
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == 0
    assert tree.is_around(span_id(1), span_id(4))
    assert not tree.is_around(span_id(3), span_id(4))
    assert tree.are_family(span_id(2), span_id(3))
    assert not tree.are_family(span_id(2), span_id(4))


def test_a_circle_of_parents_ends() -> None:
    circle = {span_id(1): span_id(2), span_id(2): span_id(1)}
    assert not SpanTree(circle).is_around(span_id(9), span_id(1))
