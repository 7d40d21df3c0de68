"""What a format module is shown to recognise its own files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from tracejury.ingest.trace import IngestError, Rejected

_KEY = re.compile(rb'(?<!\\)"([^"\\]{1,80})"\s*:')


@dataclass(frozen=True)
class FileSample:
    """What a reader sees to recognise its own: the name, and the first bytes as UTF-8 (all of them when `whole`)."""

    file: str
    data: bytes
    whole: bool

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every JSON key in the sample, of whatever level."""
        return frozenset(key.decode("utf-8", "replace") for key in set(_KEY.findall(self.data)))

    @cached_property
    def start(self) -> bytes:
        """The first bytes that are no white space."""
        return self.data[:4096].lstrip()


def rejected(file: str, error: IngestError) -> Rejected:
    """The error as a named rejection of `file`."""
    return Rejected(file=file, place=error.place, reason=error.reason, remedy=error.remedy, lost=error.lost)
