"""The files of one execution as one kept source: several packed as they are into a tar archive, and taken out again."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence

from tracejury.ingest.trace import Source


def packed(parts: Sequence[tuple[str, bytes]]) -> bytes:
    """A tar archive of these files, the same bytes whenever it is made."""
    archive_bytes = io.BytesIO()
    with tarfile.open(fileobj=archive_bytes, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in parts:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return archive_bytes.getvalue()


def is_packed(data: bytes) -> bool:
    return data[257:262] == b"ustar"


def unpacked(source: Source) -> tuple[Source, ...]:
    """The files that `packed` put together, each named below the source."""
    with tarfile.open(fileobj=io.BytesIO(source.data)) as archive:
        return tuple(
            Source(file=f"{source.file}/{member.name}", data=source.data[member.offset_data :][: member.size])
            for member in archive
            if member.isfile()
        )
