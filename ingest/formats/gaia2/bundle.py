"""Which files belong to one run, and their reading together."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tracejury.ingest.formats.gaia2.benchmark import (
    OUTPUT,
    STATISTICS,
    base_name,
    looks_like_statistics,
    read_output,
    read_statistics,
    row_of,
)
from tracejury.ingest.formats.gaia2.build import Run, run_trace
from tracejury.ingest.formats.gaia2.cli_folder import FILES, folder_name, read_cli
from tracejury.ingest.formats.gaia2.export import Export, looks_like_export, read_export
from tracejury.ingest.formats.gaia2.lite import Lite, looks_like_lite, read_lite
from tracejury.ingest.formats.gaia2.row import looks_like_row, row_attributes, row_evidence
from tracejury.ingest.formats.gaia2.values import mapping
from tracejury.ingest.formats.gaia2.verdict import Evidence
from tracejury.ingest.parse import parse_json
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

FORMS = frozenset({"hf", "lite", "gui"})
ROW_FILE = "hf_row.json"


def bundles(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The files of each run: of one base name in `hf/`, `lite/` and `gui/`, with the benchmark's `output.jsonl`.

    The last bundle of a benchmark are its `output.jsonl` and statistics alone: they name runs without a trace.
    """
    runs: dict[tuple[str, str], list[str]] = {}
    outputs = {_folder(name): name for name in names if base_name(name) == OUTPUT}
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.suffix != ".json":
            continue
        if path.parent.name in FORMS:
            runs.setdefault((_folder(str(path.parent)), path.name), []).append(name)
        elif _folder(name) in outputs and path.name not in {STATISTICS, ROW_FILE}:
            runs.setdefault((_folder(name), path.name), []).append(name)
    found = [
        (*files, *([outputs[folder]] if folder in outputs else _lone_row(folder, runs, names)))
        for (folder, _), files in runs.items()
    ]
    for folder, output in outputs.items():
        statistics = [name for name in names if base_name(name) == STATISTICS and _folder(name) == folder]
        found.append((output, *statistics))
    folders: dict[str, list[str]] = {}
    for name in names:
        if base_name(name) in FILES:
            folders.setdefault(_folder(name), []).append(name)
    found.extend(tuple(sorted(files, key=lambda name: FILES.index(base_name(name)))) for files in folders.values())
    return [files for files in found if len(files) > 1 or base_name(files[0]) == OUTPUT]


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """One run from all its files. A file that cannot be read is named, and the run is read from the others."""
    if all(base_name(source.file) in FILES for source in sources):
        yield from read_cli(sources, _folder_source(sources), folder_name(sources[0].file))
        return
    values: list[tuple[Source, Json]] = []
    for source in sources:
        if base_name(source.file) == OUTPUT:
            continue
        try:
            values.append((source, parse_json(source.data)))
        except IngestError as error:
            yield rejected(source.file, error)
    output = next((source for source in sources if base_name(source.file) == OUTPUT), None)
    runs = [(source, value) for source, value in values if looks_like_export(value) or looks_like_lite(value)]
    if runs:
        yield from _read_run(runs, values, output)
        return
    for source, value in values:
        if looks_like_statistics(value):
            yield from read_statistics(source, output)
        else:
            yield rejected(source.file, IngestError("no file of a GAIA2 run", remedy="leave it out"))
    if output is not None and all(looks_like_statistics(value) for _, value in values):
        yield from read_output(output, beside)


def _read_run(
    runs: list[tuple[Source, Json]], values: list[tuple[Source, Json]], output: Source | None
) -> Iterator[Trace | Rejected]:
    exports: dict[str, Export] = {}
    lite: Lite | None = None
    used: list[tuple[str, bytes]] = []
    for source, value in runs:
        try:
            if looks_like_lite(value):
                lite, form = read_lite(value), "lite"
            else:
                export = read_export(value)
                form = "gui" if export.is_gui else "hf"
                exports[form] = export
        except IngestError as error:
            yield rejected(source.file, error)
            continue
        used.append((f"{form}/{base_name(source.file)}", source.data))
    if not used:
        return
    name = base_name(runs[0][0].file)
    evidence: list[Evidence] = []
    attributes: dict[str, Json] = {}
    if output is not None and (row := row_of(output.data, name)) is not None:
        evidence.append(row_evidence(row.fields, "output.jsonl"))
        attributes = row_attributes(row.fields)
        used.append((OUTPUT, row.line + b"\n"))
    for source, value in values:
        if looks_like_row(value) and (told := _row_of_run(mapping(value), exports)) is not None:
            evidence.append(row_evidence(told, "row"))
            attributes |= row_attributes(told)
            used.append((ROW_FILE, source.data))
    run = Run(
        trace_id=PurePosixPath(name).stem,
        gui=exports.get("gui"),
        hf=exports.get("hf"),
        lite=lite,
        evidence=tuple(evidence),
        attributes=attributes,
    )
    try:
        yield run_trace(run, _source(runs[0][0], name, used))
    except IngestError as error:
        yield rejected(runs[0][0].file, error)


def _row_of_run(row: dict[str, Json], exports: dict[str, Export]) -> dict[str, Json] | None:
    """The row, when its data tell of the very events of this run."""
    try:
        data = row.get("data")
        export = read_export(parse_json(data.encode("utf-8", "surrogatepass")) if isinstance(data, str) else data)
    except IngestError:
        return None
    same = any(known.raw.get("completed_events") == export.raw.get("completed_events") for known in exports.values())
    return row if same else None


def _source(first: Source, name: str, used: list[tuple[str, bytes]]) -> Source:
    """The very bytes the trace was read from: one file as it is, several packed as they are into a tar archive."""
    if len(used) == 1:
        return first
    folder = _folder(first.file)
    parent = _folder(folder) if base_name(folder) in FORMS else folder
    return Source(file=f"{parent}/{name}" if parent else name, data=_packed(used))


def _folder_source(sources: Sequence[Source]) -> Source:
    if len(sources) == 1:
        return sources[0]
    used = [(base_name(source.file), source.data) for source in sources]
    return Source(file=_folder(sources[0].file) or folder_name(sources[0].file), data=_packed(used))


def _packed(used: Sequence[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, data in used:
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def _lone_row(folder: str, runs: dict[tuple[str, str], list[str]], names: Sequence[str]) -> list[str]:
    """The leaderboard row beside the folders of a single run."""
    if sum(where == folder for where, _ in runs) != 1:
        return []
    return [name for name in names if base_name(name) == ROW_FILE and _folder(name) == folder]


def _folder(name: str) -> str:
    return "/".join(name.replace("\\", "/").split("/")[:-1])


def unpacked(source: Source) -> tuple[Source, ...]:
    """The files of a run that `_source` packed."""
    with tarfile.open(fileobj=io.BytesIO(source.data)) as archive:
        return tuple(
            Source(file=f"{source.file}/{member.name}", data=source.data[member.offset_data :][: member.size])
            for member in archive
            if member.isfile()
        )
