"""Which files belong to one execution, and their reading together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.benchmark import (
    AROUND,
    OUTPUT,
    STATISTICS,
    around_bytes,
    base_name,
    looks_like_statistics,
    read_output,
    read_statistics,
    row_of,
    statistics_setting,
)
from tracejury.ingest.formats.gaia2.build import ExecutionFiles, execution_trace
from tracejury.ingest.formats.gaia2.cli_folder import FILES, folder_name, read_cli
from tracejury.ingest.formats.gaia2.execution_outcome import Evidence
from tracejury.ingest.formats.gaia2.export import Export, looks_like_export, read_export
from tracejury.ingest.formats.gaia2.lite import Lite, looks_like_lite, read_lite
from tracejury.ingest.formats.gaia2.parts import is_packed, packed, unpacked
from tracejury.ingest.formats.gaia2.row import looks_like_row, row_attributes, row_evidence
from tracejury.ingest.formats.gaia2.setting import FORMS, common_setting, place_of
from tracejury.ingest.parse import parse_json
from tracejury.ingest.sniff import rejected
from tracejury.ingest.trace import IngestError, Json, Rejected, Source, Trace

ROW_FILE = "hf_row.json"
_ORDER = ("hf", "gui", "lite", OUTPUT, ROW_FILE, AROUND)


def bundles(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The files of each execution: of one base name in `hf/`, `lite/` and `gui/`, with the benchmark's `output.jsonl`.

    The last bundle of a benchmark are its `output.jsonl` and statistics alone: they name executions without a trace.
    """
    executions: dict[tuple[str, str], list[str]] = {}
    outputs = {_folder(name): name for name in names if base_name(name) == OUTPUT}
    for name in names:
        path = PurePosixPath(name.replace("\\", "/"))
        if path.suffix != ".json":
            continue
        if path.parent.name in FORMS:
            executions.setdefault((_folder(str(path.parent)), path.name), []).append(name)
        elif _folder(name) in outputs and path.name not in {STATISTICS, ROW_FILE, AROUND}:
            executions.setdefault((_folder(name), path.name), []).append(name)
    entries = [
        (*files, *([outputs[folder]] if folder in outputs else _lone_row(folder, executions, names)))
        for (folder, _), files in executions.items()
    ]
    entries.extend(_benchmark(folder, output, executions, names) for folder, output in outputs.items())
    entries.extend(_above(name, outputs) for name in names if base_name(name) == STATISTICS)
    folders: dict[str, list[str]] = {}
    for name in names:
        if base_name(name) in FILES:
            folders.setdefault(_folder(name), []).append(name)
    entries.extend(tuple(sorted(files, key=lambda name: FILES.index(base_name(name)))) for files in folders.values())
    return [files for files in entries if len(files) > 1 or (files and base_name(files[0]) == OUTPUT)]


def _benchmark(
    folder: str, output: str, executions: Mapping[tuple[str, str], Sequence[str]], names: Sequence[str]
) -> tuple[str, ...]:
    """An `output.jsonl` with the statistics beside or above it, and one execution that says what they all share."""
    statistics = [name for name in names if base_name(name) == STATISTICS and _is_above(_folder(name), folder)]
    own = [name for name in names if base_name(name) == AROUND and _folder(name) == folder]
    nearest = max(statistics, key=len, default=None)
    files = [name for (where, _), group in executions.items() if where == folder for name in group]
    first = sorted(files, key=lambda name: (base_name(_folder(name)) == "lite", name))[:1]
    return (output, *own, *([] if nearest is None else [nearest]), *first)


def _above(statistics: str, outputs: Mapping[str, str]) -> tuple[str, ...]:
    """Statistics with every `output.jsonl` below their folder, where none lies beside them."""
    folder = _folder(statistics)
    below = [output for where, output in outputs.items() if where != folder and _is_above(folder, where)]
    return (statistics, *below) if below and folder not in outputs else ()


def _is_above(folder: str, other: str) -> bool:
    return other == folder or folder == "" or other.startswith(f"{folder}/")


def read_bundle(sources: tuple[Source, ...], beside: Sequence[str] = ()) -> Iterator[Trace | Rejected]:
    """One execution from all its files. A file that cannot be read is named, and the others are read."""
    if all(base_name(source.file) in FILES for source in sources):
        yield from read_cli(sources, _folder_source(sources), folder_name(sources[0].file))
        return
    if base_name(sources[0].file) in {OUTPUT, STATISTICS}:
        yield from _read_benchmark(sources, beside)
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
    executions = [(source, value) for source, value in values if looks_like_export(value) or looks_like_lite(value)]
    if executions:
        yield from _read_execution(executions, values, output)
        return
    for source, _ in values:
        yield rejected(source.file, IngestError("not a file of a GAIA2 execution", remedy="leave it out"))


def _read_benchmark(sources: Sequence[Source], beside: Sequence[str]) -> Iterator[Trace | Rejected]:
    """The executions of an `output.jsonl` that left no trace, or statistics against every output below their folder."""
    outputs = [source for source in sources if base_name(source.file) == OUTPUT]
    statistics = [source for source in sources if base_name(source.file) == STATISTICS]
    if base_name(sources[0].file) == STATISTICS:
        yield from read_statistics(sources[0], outputs)
        return
    for source in statistics:
        if _folder(source.file) == _folder(outputs[0].file):
            yield from read_statistics(source, outputs)
    around: dict[str, Json] = {}
    for source in sources[1:]:
        try:
            around = {**around, **_around(source)}
        except IngestError:
            continue  # the execution or the statistics are named where they are read themselves
    yield from read_output(outputs[0], beside, around)


def _around(source: Source) -> dict[str, Json]:
    """What one file says that all executions of its benchmark share."""
    value = parse_json(source.data)
    if base_name(source.file) == AROUND:
        return object_in(value)
    if looks_like_statistics(value):
        return statistics_setting(source.data)
    export = read_lite(value).as_export() if looks_like_lite(value) else read_export(value)
    return common_setting(export)


def complete(stored: Source, new: Source) -> Trace | None:
    """The execution that the files of both sources tell of together; None where `new` adds nothing to `stored`.

    Raises `IngestError` where they hold different files of one form: then they are two executions of one name.
    """
    known, more = _parts(stored), _parts(new)
    differing = [form for form in known.keys() & more.keys() - {AROUND} if known[form][1] != more[form][1]]
    if differing:
        raise IngestError(f"the two have different {_form_name(differing[0])}", remedy="rename one of them")
    together = {**more, **known}
    if together.keys() & FORMS:
        together.pop(AROUND, None)
    elif AROUND in together:
        together[AROUND] = (AROUND, around_bytes({**_around_of(known), **_around_of(more)}))
    if together == {form: known.get(form) for form in together}:
        return None
    file = max((stored.file, new.file), key=_tells)
    source = Source(file=file, data=packed([together[form] for form in sorted(together, key=_ORDER.index)]))
    items = list(read_bundle(unpacked(source)))
    traces = [one for one in items if not isinstance(one, Rejected)]
    if len(traces) != 1 or len(items) != 1:
        raise IngestError("the files do not belong to one execution", remedy="ingest them into another workspace")
    return replace(traces[0], source=source)


def _parts(source: Source) -> dict[str, tuple[str, bytes]]:
    """The files of a source by their form, each with the name that it has in an archive."""
    parts: dict[str, tuple[str, bytes]] = {}
    for one in unpacked(source) if is_packed(source.data) else (source,):
        name = base_name(one.file)
        if name in {OUTPUT, AROUND, ROW_FILE}:
            parts[name] = (name, one.data)
        else:
            form = _form_of(parse_json(one.data))
            parts[form] = (f"{form}/{name}", one.data)
    return parts


def _around_of(parts: Mapping[str, tuple[str, bytes]]) -> dict[str, Json]:
    return object_in(parse_json(parts[AROUND][1])) if AROUND in parts else {}


def _form_of(value: Json) -> str:
    if looks_like_lite(value):
        return "lite"
    if not looks_like_export(value):
        raise IngestError("one of the two is not a file of an execution", remedy="ingest them into another workspace")
    return "gui" if read_export(value).is_gui else "hf"


def _form_name(form: str) -> str:
    return f"{form} files" if form in FORMS else f"{form} lines"


def _tells(file: str) -> tuple[bool, bool, int]:
    """Of two paths the one whose folders say more of the benchmark."""
    place = place_of(file)
    return (place.config is not None, place.phase is not None, len(file))


def _read_execution(
    executions: list[tuple[Source, Json]], values: list[tuple[Source, Json]], output: Source | None
) -> Iterator[Trace | Rejected]:
    exports: dict[str, Export] = {}
    lite: Lite | None = None
    used: list[tuple[str, bytes]] = []
    for source, value in executions:
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
    name = base_name(executions[0][0].file)
    evidence: list[Evidence] = []
    attributes: dict[str, Json] = {}
    if output is not None and (row := row_of(output.data, name)) is not None:
        evidence.append(row_evidence(row.fields, "output.jsonl"))
        attributes = row_attributes(row.fields)
        used.append((OUTPUT, row.line + b"\n"))
    for source, value in values:
        if looks_like_row(value) and (execution_row := _row_of_execution(object_in(value), exports)) is not None:
            evidence.append(row_evidence(execution_row, "row"))
            attributes |= row_attributes(execution_row)
            used.append((ROW_FILE, source.data))
    execution = ExecutionFiles(
        trace_id=PurePosixPath(name).stem,
        gui=exports.get("gui"),
        hf=exports.get("hf"),
        lite=lite,
        evidence=tuple(evidence),
        attributes=attributes,
    )
    try:
        yield execution_trace(execution, _source(executions[0][0], name, used))
    except IngestError as error:
        yield rejected(executions[0][0].file, error)


def _row_of_execution(row: dict[str, Json], exports: dict[str, Export]) -> dict[str, Json] | None:
    """The row, when its data tell of the very events of this execution."""
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
    return Source(file=f"{parent}/{name}" if parent else name, data=packed(used))


def _folder_source(sources: Sequence[Source]) -> Source:
    if len(sources) == 1:
        return sources[0]
    used = [(base_name(source.file), source.data) for source in sources]
    return Source(file=_folder(sources[0].file) or folder_name(sources[0].file), data=packed(used))


def _lone_row(folder: str, executions: dict[tuple[str, str], list[str]], names: Sequence[str]) -> list[str]:
    """The leaderboard row beside the folders of a single execution."""
    if sum(where == folder for where, _ in executions) != 1:
        return []
    return [name for name in names if base_name(name) == ROW_FILE and _folder(name) == folder]


def _folder(name: str) -> str:
    return "/".join(name.replace("\\", "/").split("/")[:-1])
