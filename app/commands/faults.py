"""What a command says when the machine fails it: what happened, and what to do; a traceback only with --verbose."""

from __future__ import annotations

import errno
import logging
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

_log = logging.getLogger(__name__)
_FULL = "free space on its disk (`df -h`), then run the command again; what is already stored stays"
_REMEDIES: dict[int, str] = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: "free space in your quota, then run the command again; what is already stored stays",
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f unlimited`), then run the command again",
    errno.EROFS: "choose another place: this folder is read-only",
    errno.EACCES: "check who may read and write it (`ls -l`)",
    errno.EPERM: "check who may read and write it (`ls -l`)",
    errno.EMFILE: "raise the limit on open files (`ulimit -n 4096`)",
    errno.EPIPE: "read the output to its end",
}
_OF_DATABASE: tuple[tuple[str, str], ...] = (
    ("disk is full", _FULL),
    ("no space left", _FULL),
    ("disk i/o error", "check the disk's space and the limit on the size of files (`df -h`, `ulimit -f`)"),
    ("malformed", "`tracejury verify` says what is damaged; `tracejury restore` restores a backup"),
    ("not a database", "`tracejury restore` restores a backup, or choose another --home"),
    ("readonly", "check who may write to the workspace's folder and its database (`ls -l`)"),
    ("unable to open", "check that the workspace's folder is there and who may write to it"),
    ("locked", "wait for the other process that writes, or stop it"),
)
"""What a database says, and what helps."""


class Commands(click.Group):
    """A group whose commands end with a message and exit status 1, whatever fails; its help lists them by section."""

    def __init__(self, *, sections: Mapping[str, Sequence[str]], **attributes: Any) -> None:
        super().__init__(**attributes)
        self.sections = sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands of each section, in one column over all sections."""
        width = max(map(len, self.commands))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(width), self.commands[name].get_short_help_str(formatter.width - width - 4))
                        for name in names
                    ]
                )

    def main(self, *arguments: Any, **more: Any) -> Any:
        """As of any group; what it prints on a terminal is text, whatever traces and labels hold."""
        with text_on_terminals():
            return super().main(*arguments, **more)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, KeyboardInterrupt):
            raise
        except Exception as error:
            _log.debug("the command failed", exc_info=True)
            raise click.ClickException(error_words(error)) from None


@contextmanager
def text_on_terminals() -> Iterator[None]:
    """Show the control characters of texts on a terminal, which would obey them: names come from traces."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _Terminal(one)) if one.isatty() else one for one in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _Terminal:
    """The stream of a terminal that gets each control character as `\\x1b`; line ends and a bar's returns stay."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|(?<!\A)\r(?!\n|\Z)")


def error_words(error: BaseException) -> str:
    """What happened and what to do, in one line."""
    from tracejury.app.config import SettingError  # late: it imports the server

    cause = _cause(error)
    if isinstance(cause, sqlite3.Error) or _is_of_database(error):
        words = str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
        known = (remedy for part, remedy in _OF_DATABASE if part in str(cause).lower())
        return f"the database failed: {words}. Try: {next(known, '`tracejury verify`, and check that it runs')}"
    if isinstance(cause, OSError):
        where = f" ({cause.filename})" if cause.filename else ""
        remedy = _REMEDIES.get(cause.errno or 0, "check the path, and who may read and write there")
        return f"{cause.strerror or cause}{where}. Try: {remedy}"
    if isinstance(cause, RecursionError):
        return "a value is nested too deeply (more than about 1,000 levels). Try: flatten it, or leave it out"
    if isinstance(cause, MemoryError):
        return "out of memory. Try: fewer files at once, --workers 1, or a machine with more memory"
    if isinstance(cause, SettingError):
        return f"{cause}. Try: correct or unset the variable"
    words = f"{type(cause).__name__}: {cause}".strip()[:500]
    return f"unexpected failure: {words}. Try: run it again with -v before the command, and report it"


def _cause(error: BaseException) -> BaseException:
    """The driver's own error inside of SQLAlchemy's, whose text holds the statement."""
    return getattr(error, "orig", None) or error


def _is_of_database(error: BaseException) -> bool:
    return any(base.__module__ == "sqlalchemy.exc" for base in type(error).__mro__)
