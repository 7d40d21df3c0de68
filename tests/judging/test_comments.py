"""Comments: kept with history, and read only by who may see the labels of others on the trace."""

import csv
import io
from pathlib import Path

import pytest
from sqlalchemy import func, select
from tests.build import span_id
from tests.judging.team import T0, many_traces, queue_of, submit, trace_id

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.labels.comments import (
    Comment,
    CommentError,
    Kind,
    comments_on,
    delete_comment,
    mark_read,
    mentioned,
    messages,
    put_comment,
    to_csv,
)
from tracejury.judging.moving import move
from tracejury.judging.queues.places import next_item
from tracejury.judging.removal import remove_traces
from tracejury.judging.store import Workspace, tables
from tracejury.judging.store.backup import back_up_first
from tracejury.judging.store.people import Role, add_person

ONE, TWO = trace_id(0), trace_id(1)


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    space = many_traces(tmp_path / "home", 3)
    roles: dict[str, Role] = {"ada": "annotator", "ben": "annotator", "Mary Jane": "annotator", "lead": "admin"}
    with write_transaction(space.engine) as connection:
        for name, role in roles.items():
            add_person(connection, name, role=role, by="test")
    return space


def write(space: Workspace, author: str, body: str, comment_id: str = "c1", **more: object) -> Comment:
    with write_transaction(space.engine) as connection:
        return put_comment(
            connection, comment_id=comment_id, author=author, body=body, **({"trace_id": ONE} | more)  # type: ignore[arg-type]
        )  # fmt: skip


def read(space: Workspace, reader: str, role: Role = "annotator", occasion: int = 0) -> list[str]:
    with read_transaction(space.engine) as connection:
        return [one.body for one in comments_on(connection, ONE, reader=reader, role=role, occasion=occasion)]


def named(space: Workspace, reader: str, role: Role = "annotator") -> list[str]:
    with read_transaction(space.engine) as connection:
        return [one.body for one in mentioned(connection, reader=reader, role=role)]


def rows(space: Workspace) -> int:
    with read_transaction(space.engine) as connection:
        return int(connection.scalar(select(func.count()).select_from(tables.comment)) or 0)


def test_a_comment_keeps_its_history_and_the_same_again_is_stored_once(space: Workspace) -> None:
    write(space, "ada", "the tool failed", span_id=span_id(2))
    write(space, "ada", "the tool failed", span_id=span_id(2))
    changed = write(space, "ada", "the tool failed twice", span_id=span_id(2))
    assert (rows(space), changed.body, changed.edited_at is not None) == (2, "the tool failed twice", True)
    with write_transaction(space.engine) as connection:
        delete_comment(connection, "c1", author="ada")
        delete_comment(connection, "c1", author="ada")
    assert (rows(space), read(space, "ada")) == (3, [])


def test_only_its_author_changes_or_deletes_a_comment(space: Workspace) -> None:
    write(space, "ada", "mine")
    with pytest.raises(CommentError, match="somebody else"):
        write(space, "ben", "no longer")
    with write_transaction(space.engine) as connection, pytest.raises(CommentError, match="only its author"):
        delete_comment(connection, "c1", author="ben")
    assert read(space, "ada") == ["mine"]


@pytest.mark.parametrize(
    ("body", "more", "reason"),
    [("  ", {}, "empty"), ("x" * 10_001, {}, "10,001 characters"), ("a", {"trace_id": "nowhere"}, "no trace")],
)
def test_what_cannot_be_stored_is_refused_with_a_reason(
    space: Workspace, body: str, more: dict[str, str], reason: str
) -> None:
    with pytest.raises(CommentError, match=reason):
        write(space, "ada", body, **more)
    assert rows(space) == 0


def test_names_with_spaces_are_mentioned_and_a_longer_word_names_nobody(space: Workspace) -> None:
    assert write(space, "ada", "@Mary Jane and @ben, not @benjamin").mentions == ("Mary Jane", "ben")


def test_a_comment_reaches_an_annotator_only_once_they_have_submitted_the_trace(space: Workspace) -> None:
    write(space, "ben", "@ada the judge LC is wrong here")
    assert (read(space, "ada"), named(space, "ada")) == ([], [])
    assert (read(space, "lead", "admin"), named(space, "lead", "admin")) == (["@ada the judge LC is wrong here"], [])
    submit(space, "ada", ONE)
    assert read(space, "ada") == named(space, "ada") == ["@ada the judge LC is wrong here"]


@pytest.mark.parametrize("role", ["annotator", "adjudicator", "admin"])
def test_nobody_who_works_on_the_trace_in_a_blind_queue_reads_others(space: Workspace, role: Role) -> None:
    write(space, "ben", "@ada look at this")
    key = queue_of(space, 1)
    assert next_item(space.engine, key, "ada", now=T0) is not None
    assert (read(space, "ada", role), named(space, "ada", role)) == ([], [])


def test_a_hidden_repeat_does_not_show_the_own_comments_of_the_first_time(space: Workspace) -> None:
    write(space, "ada", "first time")
    write(space, "ada", "again", "c2", occasion=1)
    assert (read(space, "ada"), read(space, "ada", occasion=1)) == (["first time"], ["again"])


def send_back(space: Workspace, *, while_blind: bool, kind: Kind = "return") -> None:
    write(space, "lead", "span 2 again", "r", kind=kind, to=["ada"], while_blind=while_blind)


@pytest.mark.parametrize("while_blind", [True, False])
def test_a_return_is_read_while_blind_only_by_whom_it_names_and_only_if_its_author_allows(
    space: Workspace, while_blind: bool
) -> None:
    send_back(space, while_blind=while_blind)
    write(space, "ben", "@ada LC is wrong", "c2")
    allowed = ["span 2 again"] if while_blind else []
    assert (read(space, "ada"), named(space, "ada"), read(space, "ben")) == (allowed, allowed, ["@ada LC is wrong"])
    key = queue_of(space, 1)
    assert next_item(space.engine, key, "ada", now=T0) is not None
    assert (read(space, "ada"), named(space, "ada")) == (allowed, allowed)


def test_no_comment_but_a_return_is_read_while_blind(space: Workspace) -> None:
    send_back(space, while_blind=True, kind="comment")
    assert (read(space, "ada"), named(space, "ada")) == ([], [])


def test_a_return_that_its_author_rewrote_at_the_desk_is_not_read_while_blind(space: Workspace) -> None:
    send_back(space, while_blind=True)
    write(space, "lead", "the judges say span 2", "r")
    assert (read(space, "ada"), named(space, "ada")) == ([], [])


def test_a_hidden_repeat_shows_no_return_of_the_first_time(space: Workspace) -> None:
    key = queue_of(space, 1, repeat_share=1.0)
    submit(space, "ada", ONE)
    again = next_item(space.engine, key, "ada", now=T0)
    assert again is not None
    assert (again.trace_id, again.occasion) == (ONE, 1)
    send_back(space, while_blind=True)
    assert (read(space, "ada", occasion=1), named(space, "ada")) == ([], [])


def test_a_message_reaches_its_people_and_one_without_names_everyone(space: Workspace) -> None:
    write(space, "ada", "when is this due?", "m1", kind="message", trace_id=None, to=["lead"])
    write(space, "lead", "version 2 is out", "m2", kind="message", trace_id=None, to=[])
    with read_transaction(space.engine) as connection:
        bodies = {who: [one.body for one in messages(connection, who)] for who in ("ada", "ben", "lead")}
    both = ["version 2 is out", "when is this due?"]
    assert bodies == {"ada": both, "ben": both[:1], "lead": both}


def test_comments_are_exported_whole_and_no_cell_runs_as_a_formula(space: Workspace) -> None:
    write(space, "ada", "=1+1 @ben", label_id="e1")
    write(space, "ada", "@ben", label_id="e1")
    with read_transaction(space.engine) as connection:
        exported = list(csv.DictReader(io.StringIO(to_csv(connection))))
    assert [(row["author"], row["mentions"], row["label_id"]) for row in exported] == [("ada", "ben", "e1")] * 2
    assert [row["body"][0] for row in exported] == ["'", "'"]
    assert [row["edited_at"] == "" for row in exported] == [True, False]


def test_comments_go_with_the_labels_of_a_removed_trace_and_stay_without(space: Workspace) -> None:
    write(space, "ada", "here")
    write(space, "ada", "there", "c2", trace_id=TWO)
    remove_traces(space, [TWO], with_labels=False, by="test")
    assert rows(space) == 2
    for comment_id in ("c1", "c2"):
        mark_read(space.engine, [comment_id], reader="ben")
    remove_traces(space, [ONE], with_labels=True, by="test")
    assert rows(space) == 1
    with read_transaction(space.engine) as connection:
        assert connection.scalars(select(tables.comment_read.c.comment_id)).all() == ["c2"]


def test_comments_are_backed_up_and_moved(space: Workspace, tmp_path: Path) -> None:
    write(space, "ada", "here")
    assert b"here" in back_up_first(space, "test").read_bytes()
    moved = move(space.engine, f"sqlite:///{tmp_path / 'other.db'}")
    assert [one.rows for one in moved if one.name == "comment"] == [1]
