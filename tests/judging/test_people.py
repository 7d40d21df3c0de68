"""People: roles that are kept, passwords that are hashed, guessing that is stopped, all of it written down."""

import threading
from contextlib import suppress
from pathlib import Path

import pytest
from argon2 import PasswordHasher
from sqlalchemy import insert, select, update

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.store import Workspace, open_workspace, people, tables
from tracejury.judging.store.audit import audit_log
from tracejury.judging.store.people import (
    TRIES_BY_ADDRESS,
    TRIES_BY_NAME,
    WINDOW_S,
    DeactivatedError,
    PeopleError,
    TooManyTriesError,
    add_person,
    change_person,
    ensure_annotator,
    person,
    person_by_email,
    sign_in,
    sign_out,
    someone_can_sign_in,
)

T0 = 1_800_000_000_000_000
SECRET = "a long enough secret"


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(people, "_hasher", lambda: quick)
    opened = open_workspace(tmp_path / "home")
    with write_transaction(opened.engine) as connection:
        add_person(connection, "root", role="admin", by="me", password=SECRET, email="Root@Example.org")
        add_person(connection, "ada", role="annotator", by="root", password=SECRET)
    return opened


def whats(space: Workspace) -> list[tuple[str, str, str]]:
    with read_transaction(space.engine) as connection:
        log = audit_log(connection)
    return [(row.who, row.what, row.subject) for row in log.itertuples()][::-1]


def test_the_right_password_signs_in_and_is_not_stored(space: Workspace) -> None:
    found = sign_in(space.engine, "ada", SECRET)
    assert found is not None
    assert (found.name, found.role) == ("ada", "annotator")
    with read_transaction(space.engine) as connection:
        stored = connection.scalar(
            select(tables.annotator.c.password_hash).where(tables.annotator.c.annotator == "ada")
        )
    assert stored is not None
    assert stored.startswith("$argon2id$")
    assert SECRET not in stored


@pytest.mark.parametrize(("name", "password"), [("ada", "a long enough secreT"), ("ada", ""), ("eve", SECRET)])
def test_wrong_names_and_wrong_passwords_are_the_same_no(space: Workspace, name: str, password: str) -> None:
    assert sign_in(space.engine, name, password) is None


def test_a_name_that_postgresql_cannot_hold_is_written_down_so_that_it_can(space: Workspace) -> None:
    """Else one wrong name of a stranger would keep the workspace from ever moving."""
    assert sign_in(space.engine, "ro\0ot", SECRET) is None
    with read_transaction(space.engine) as connection:
        assert audit_log(connection, limit=1)["subject"].tolist() == ["ro\\u0000ot"]


def test_rows_that_are_inserted_together_hold_no_nul_either(space: Workspace) -> None:
    rows = [{"who": f"{who}\0", "what": "x", "subject": "y", "detail": "{}", "created_at": 1} for who in "ab"]
    add = insert(tables.audit).returning(tables.audit.c.row_key, sort_by_parameter_order=True)
    with write_transaction(space.engine) as connection:
        assert len(connection.execute(add, rows).all()) == len(rows)
        connection.execute(insert(tables.audit), rows)
        names = connection.scalars(select(tables.audit.c.who).where(tables.audit.c.what == "x")).all()
    assert names == ["a\\u0000", "b\\u0000"] * 2


def test_who_is_not_active_or_only_imported_cannot_sign_in(space: Workspace) -> None:
    with write_transaction(space.engine) as connection:
        change_person(connection, "ada", by="root", active=False)
        ensure_annotator(connection, "imported")
    with pytest.raises(DeactivatedError):  # told only to who knows the password
        sign_in(space.engine, "ada", SECRET)
    assert sign_in(space.engine, "ada", "a wrong secret") is None
    assert sign_in(space.engine, "imported", SECRET) is None
    with read_transaction(space.engine) as connection:
        assert person(connection, "ada") is None
        assert person(connection, "imported") is None


def test_a_weaker_hash_is_renewed_at_the_next_sign_in(space: Workspace) -> None:
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(SECRET)
    mine = tables.annotator.c.annotator == "ada"
    with write_transaction(space.engine) as connection:
        connection.execute(update(tables.annotator).where(mine).values(password_hash=weak))
    assert sign_in(space.engine, "ada", SECRET) is not None
    with read_transaction(space.engine) as connection:
        assert connection.scalar(select(tables.annotator.c.password_hash).where(mine)) != weak
    assert sign_in(space.engine, "ada", SECRET) is not None


class TestGuessing:
    def test_after_too_many_wrong_tries_even_the_right_password_waits(self, space: Workspace) -> None:
        for number in range(TRIES_BY_NAME):
            assert sign_in(space.engine, "ada", f"guess {number}", now=T0 + number) is None
        with pytest.raises(TooManyTriesError) as caught:
            sign_in(space.engine, "ada", SECRET, now=T0 + 60_000_000)
        assert caught.value.wait_s == WINDOW_S - 60
        assert sign_in(space.engine, "root", SECRET, now=T0 + 60_000_000) is not None
        assert sign_in(space.engine, "ada", SECRET, now=T0 + WINDOW_S * 1_000_000 + 100) is not None

    def test_a_success_clears_the_count(self, space: Workspace) -> None:
        for turn in range(3):
            for number in range(TRIES_BY_NAME - 1):
                assert sign_in(space.engine, "ada", "wrong", now=T0 + turn * 1000 + number) is None
            assert sign_in(space.engine, "ada", SECRET, now=T0 + turn * 1000 + 500) is not None

    def test_one_address_cannot_try_many_names(self, space: Workspace) -> None:
        for number in range(TRIES_BY_ADDRESS):
            assert sign_in(space.engine, f"name {number}", "wrong", address="10.0.0.9", now=T0) is None
        with pytest.raises(TooManyTriesError):
            sign_in(space.engine, "ada", SECRET, address="10.0.0.9", now=T0)
        assert sign_in(space.engine, "ada", SECRET, address="10.0.0.8", now=T0) is not None

    def test_an_own_account_does_not_open_the_way_to_guess_others(self, space: Workspace) -> None:
        """Signing in between the guesses clears one's own name only, not the guessed one."""
        for number in range(TRIES_BY_NAME):
            assert sign_in(space.engine, "root", "wrong", address="10.0.0.9", now=T0 + 2 * number) is None
            assert sign_in(space.engine, "ada", SECRET, address="10.0.0.9", now=T0 + 2 * number + 1) is not None
        with pytest.raises(TooManyTriesError):
            sign_in(space.engine, "root", SECRET, address="10.0.0.9", now=T0 + 100)

    def test_a_stranger_elsewhere_does_not_lock_a_person_out(self, space: Workspace) -> None:
        for number in range(3 * TRIES_BY_NAME):
            at = T0 + number * WINDOW_S * 100_000
            with suppress(TooManyTriesError):
                assert sign_in(space.engine, "ada", "wrong", address="10.0.0.9", now=at) is None
        assert sign_in(space.engine, "ada", SECRET, address="10.0.0.8", now=at + 1) is not None

    def test_the_wait_grows_with_every_round_of_wrong_tries(self, space: Workspace) -> None:
        now, waits = T0, []
        for _ in range(4 * TRIES_BY_NAME):
            try:
                sign_in(space.engine, "ada", "wrong", address="10.0.0.9", now=now)
            except TooManyTriesError as error:
                waits.append(error.wait_s)
                now += error.wait_s * 1_000_000 + 1_000_000
        assert waits[0] == WINDOW_S
        assert max(waits) >= 2 * WINDOW_S - 60

    def test_a_known_device_with_the_right_password_goes_through(self, space: Workspace) -> None:
        for number in range(TRIES_BY_ADDRESS):
            assert sign_in(space.engine, f"name {number}", "wrong", address="10.0.0.9", now=T0) is None
        for _ in range(TRIES_BY_NAME):
            assert sign_in(space.engine, "ada", "wrong", address="10.0.0.7", now=T0) is None
        assert sign_in(space.engine, "ada", SECRET, address="10.0.0.9", device="laptop", now=T0 + 1) is not None
        assert sign_in(space.engine, "ada", SECRET, address="10.0.0.7", device="laptop", now=T0 + 1) is not None

    def test_a_stolen_device_guesses_no_more_than_others(self, space: Workspace) -> None:
        for number in range(TRIES_BY_NAME):
            assert sign_in(space.engine, "ada", "wrong", address=f"10.0.0.{number}", device="x", now=T0) is None
        with pytest.raises(TooManyTriesError):
            sign_in(space.engine, "ada", SECRET, address="10.0.1.1", device="x", now=T0 + 1)

    def test_guessing_from_everywhere_ends_too(self, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracejury.judging.store.people.TRIES_ANYWHERE", 10)
        for number in range(10):
            assert sign_in(space.engine, "ada", "wrong", address=f"10.0.0.{number}", now=T0) is None
        with pytest.raises(TooManyTriesError):
            sign_in(space.engine, "ada", SECRET, address="10.0.1.1", now=T0 + 1)
        assert sign_in(space.engine, "ada", SECRET, address="10.0.1.1", device="laptop", now=T0 + 1) is not None

    def test_many_at_once_do_not_slip_through(self, space: Workspace) -> None:
        refused: list[bool] = []

        def guess() -> None:
            try:
                sign_in(space.engine, "ada", "wrong", now=T0)
                refused.append(False)
            except TooManyTriesError:
                refused.append(True)

        threads = [threading.Thread(target=guess) for _ in range(2 * TRIES_BY_NAME)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert refused.count(False) == TRIES_BY_NAME


class TestChanges:
    def test_roles_change_and_are_written_down(self, space: Workspace) -> None:
        with write_transaction(space.engine) as connection:
            assert change_person(connection, "ada", by="root", role="researcher").role == "researcher"
            log = audit_log(connection, what="role changed")
        assert log["detail"].tolist() == ['{"role":"researcher","from":"annotator"}']
        assert ("root", "role changed", "ada") in whats(space)

    def test_the_last_administrator_stays_one(self, space: Workspace) -> None:
        for change in ({"role": "annotator"}, {"active": False}):
            with write_transaction(space.engine) as connection, pytest.raises(PeopleError, match="last administrator"):
                change_person(connection, "root", by="root", **change)
        with write_transaction(space.engine) as connection:
            change_person(connection, "ada", by="root", role="admin")
            assert change_person(connection, "root", by="ada", role="annotator").role == "annotator"

    def test_a_new_password_a_deactivation_and_signing_out_end_the_sessions(self, space: Workspace) -> None:
        with write_transaction(space.engine) as connection:
            assert change_person(connection, "ada", by="root", password="another long secret").epoch == 1
            assert change_person(connection, "ada", by="root", role="adjudicator").epoch == 1
            assert change_person(connection, "ada", by="root", active=False).epoch == 2
            assert change_person(connection, "ada", by="root", active=True).epoch == 2
        sign_out(space.engine, "ada")
        with read_transaction(space.engine) as connection:
            found = person(connection, "ada")
        assert found is not None
        assert found.epoch == 3

    def test_an_address_is_found_in_any_case_and_belongs_to_one(self, space: Workspace) -> None:
        with write_transaction(space.engine) as connection:
            found = person_by_email(connection, " ROOT@example.ORG ")
            assert found is not None
            assert found.name == "root"
            assert person_by_email(connection, "") is None
            with pytest.raises(PeopleError, match="belongs to root"):
                change_person(connection, "ada", by="root", email="root@EXAMPLE.org")
            assert someone_can_sign_in(connection)
            assert someone_can_sign_in(connection, by_email=True)

    @pytest.mark.parametrize(
        ("name", "changes", "message"),
        [
            ("ada", {}, "is taken"),
            ("", {}, "not a valid name"),
            ("a\nb", {}, "not a valid name"),
            ("bo", {"password": "short"}, "use 10 or more"),
            ("bo", {"role": "king"}, "not a role"),
            ("bo", {"email": "nowhere"}, "not an e-mail address"),
        ],
    )
    def test_what_cannot_be_is_refused(
        self, space: Workspace, name: str, changes: dict[str, str], message: str
    ) -> None:
        with write_transaction(space.engine) as connection, pytest.raises(PeopleError, match=message):
            add_person(connection, name, **({"role": "annotator", "by": "root"} | changes))  # type: ignore[arg-type]

    def test_an_imported_name_can_become_a_person(self, space: Workspace) -> None:
        with write_transaction(space.engine) as connection:
            ensure_annotator(connection, "ben")
            assert add_person(connection, "ben", role="annotator", by="root", password=SECRET).has_password
        assert sign_in(space.engine, "ben", SECRET) is not None
