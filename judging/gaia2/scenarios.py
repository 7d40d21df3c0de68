"""Scenarios to run: JSON files of ARE, folders of them, Parquet files of the data set, the shipped stand-ins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.export import looks_like_export, read_export
from tracejury.ingest.formats.gaia2.setting import CAPABILITIES, CONFIGS, place_of
from tracejury.ingest.formats.gaia2.values import word
from tracejury.ingest.formats.rows import read_rows
from tracejury.ingest.parse import parse_json
from tracejury.ingest.trace import IngestError, Json
from tracejury.judging.gaia2.environment import Gaia2Error

SPLITS = ("validation",)
STAND_INS = "samples"
"""The name that stands for the scenarios shipped with the product."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One scenario as ARE's JSON text; `capability` is the config that it belongs to."""

    scenario_id: str
    capability: str
    text: str
    file: str


def check_capabilities(names: Sequence[str]) -> tuple[str, ...]:
    """The names in lower case. Raises `Gaia2Error` for one that GAIA2 does not have."""
    unknown = [name for name in names if name.lower() not in CONFIGS]
    if unknown:
        raise Gaia2Error(f"GAIA2 has no capability {unknown[0]!r}. Try: {', '.join(CONFIGS)}")
    return tuple(name.lower() for name in names)


def check_split(name: str) -> str:
    """The split. Raises `Gaia2Error` for one that the data set does not publish."""
    if name not in SPLITS:
        raise Gaia2Error(f"GAIA2 publishes no split {name!r}. Try: {', '.join(SPLITS)}")
    return name


def read_scenarios(
    paths: Sequence[str | Path], *, capabilities: Sequence[str] = (), limit: int | None = None
) -> list[Scenario]:
    """The scenarios under these paths, each once, in order of name; `limit` counts over all capabilities.

    Raises `Gaia2Error` for a path or a file that holds none, and for two different scenarios of one id.
    """
    names = check_capabilities(capabilities)
    chosen: dict[tuple[str, str], Scenario] = {}
    for path in paths:
        for one in _under(path):
            known = chosen.setdefault((one.capability, one.scenario_id), one)
            if known.text != one.text:
                raise Gaia2Error(
                    f"{one.file} and {known.file} hold different scenarios of the id {one.scenario_id}. "
                    "Try: give one of them"
                )
    scenarios = [one for one in chosen.values() if not names or one.capability in names]
    if not scenarios:
        there = sorted({one.capability for one in chosen.values()})
        raise Gaia2Error(f"no scenario of {', '.join(names) or 'GAIA2'} is here. Try: {', '.join(there) or 'a folder'}")
    return scenarios[:limit]


def _under(path: str | Path) -> Iterator[Scenario]:
    if str(path) == STAND_INS:
        with resources.as_file(resources.files("tracejury.data").joinpath("gaia2/scenarios")) as folder:
            yield from _under(folder)
        return
    place = Path(path)
    if place.is_dir():
        files = sorted(file for file in place.rglob("*") if file.suffix in {".json", ".parquet"})
        if not files:
            raise Gaia2Error(f"{place} holds no JSON or Parquet file. Try: a folder of scenarios, or {STAND_INS}")
        for file in files:
            yield from _of_file(file)
    elif place.exists():
        yield from _of_file(place)
    else:
        raise Gaia2Error(f"there is no file or folder {str(place)!r}. Try: tracejury gaia2 fetch, or {STAND_INS}")


def _of_file(file: Path) -> Iterator[Scenario]:
    data = file.read_bytes()
    try:
        if file.suffix == ".parquet" or data[:4] == b"PAR1":
            for place, row, error in read_rows(data, lists=()):
                if error is not None:
                    raise error
                yield _scenario(parse_json(str(row.get("data")).encode()), str(row.get("data")), file, place)
        else:
            value = parse_json(data)
            text = word(object_in(value).get("data"))
            yield _scenario(parse_json(text.encode()) if text else value, text or data.decode("utf-8"), file, "")
    except (IngestError, UnicodeDecodeError) as error:
        raise Gaia2Error(f"{file}: {error}. Try: a scenario in ARE's JSON form") from error


def _scenario(value: Json, text: str, file: Path, place: str) -> Scenario:
    named = f"{file} ({place})" if place else str(file)
    if not looks_like_export(value):
        raise Gaia2Error(f"{named} is not an ARE scenario. Try: leave it out")
    export = read_export(value)
    scenario_id = export.definition.get("scenario_id")
    if not isinstance(scenario_id, str) or not scenario_id:
        raise Gaia2Error(f"{named}: metadata.definition.scenario_id is missing. Try: export the scenario again")
    _refuse_unrunnable(export.raw, named)
    folder = file.parent.name.lower()
    here = place_of(str(file)).config or (folder if folder in CONFIGS else None)
    capability = export.config or here or export.tag or "unknown"
    return Scenario(scenario_id=scenario_id, capability=capability, text=text, file=named)


def _refuse_unrunnable(raw: object, named: str) -> None:
    """ARE writes arguments of scenarios made in Python as Python text, which it cannot read again."""
    for event in raw.get("events", ()) if isinstance(raw, dict) else ():
        if not isinstance(event, dict) or event.get("class_name") != "OracleEvent":
            continue
        for argument in (event.get("action") or {}).get("args") or ():
            kind = argument.get("value_type")
            if kind == "NoneType" or (kind in {"list", "dict"} and not _is_json(argument.get("value"))):
                raise Gaia2Error(
                    f"{named}: the argument {argument.get('name')!r} of event {event.get('event_id')} is Python text, "
                    "which ARE cannot read. Try: write it as JSON, and leave out an argument that is None"
                )


def _is_json(value: object) -> bool:
    try:
        json.loads(value if isinstance(value, str) else "null")
    except ValueError:
        return False
    return True


__all__ = ["CAPABILITIES", "SPLITS", "STAND_INS", "Scenario", "check_capabilities", "check_split", "read_scenarios"]
