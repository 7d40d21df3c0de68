"""Errors as the people of a trace see them together: who saw each one, and what most of those say of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tracejury.judging.adjudication.disputes import groups
from tracejury.judging.agreement.majority import Outcome, outcome_of
from tracejury.judging.records import DIMENSIONS, IMPACTS, ErrorLabel, Impact


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenError:
    """One error as those who saw it described it, of the `people` who submitted the trace.

    It goes by the label of the first of them by name.
    """

    labels: tuple[ErrorLabel, ...]
    people: int

    @property
    def label_id(self) -> str:
        return self.labels[0].label_id

    @property
    def outcome(self) -> Outcome:
        """Whether more than half of the trace's people saw it."""
        return outcome_of(len(self.labels), self.people)

    @property
    def span_ids(self) -> tuple[str, ...]:
        """As `most_say`."""
        return most_say([label.span_ids for label in self.labels])

    @property
    def dimensions(self) -> tuple[str, ...]:
        """As `most_say`."""
        return tuple(sorted(most_say([label.dimensions for label in self.labels]), key=DIMENSIONS.index))

    @property
    def impact(self) -> Impact | None:
        """The middle one of those given; of two in the middle the graver."""
        impacts = sorted((label.impact for label in self.labels if label.impact is not None), key=IMPACTS.index)
        return impacts[len(impacts) // 2] if impacts else None


def most_say(answers: Iterable[Collection[str]]) -> tuple[str, ...]:
    """What more than half of them name; where nothing is, what most name, all of it when tied."""
    named = [list(dict.fromkeys(one)) for one in answers]
    votes = Counter(name for one in named for name in one)
    if not votes:
        return ()
    least = min(len(named) // 2 + 1, max(votes.values()))
    return tuple(name for name, count in votes.items() if count >= least)


def seen_errors(by_person: Mapping[str, Sequence[ErrorLabel]], parents: Mapping[str, str | None]) -> list[SeenError]:
    """The errors of one trace, those of several people that are the same joined as adjudication joins them.

    `by_person` holds everyone who submitted the trace, those who saw no error too.
    """
    people = {name: by_person[name] for name in sorted(by_person)}
    error_groups = groups(people, parents=parents)
    return [SeenError(labels=tuple(label for _, label in one.labels), people=len(people)) for one in error_groups]
