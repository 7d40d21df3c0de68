"""Which scenarios are run: files, folders, Parquet, the shipped ones; what cannot be run is named with a remedy."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tracejury.judging.gaia2.environment import Gaia2Error
from tracejury.judging.gaia2.scenarios import STAND_INS, check_split, read_scenarios


def shipped(name: str = "execution/boat_entry.json") -> dict[str, Any]:
    path = Path(__file__).resolve().parents[3] / "data/gaia2/scenarios" / name
    value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return value


def named(scenario_id: str, tag: str = "Execution") -> dict[str, Any]:
    value = shipped()
    value["metadata"]["definition"] |= {"scenario_id": scenario_id, "tags": [tag]}
    return value


def put(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_the_shipped_scenarios_are_of_two_capabilities() -> None:
    assert {one.capability for one in read_scenarios([STAND_INS])} == {"execution", "adaptability"}
    assert [one.scenario_id for one in read_scenarios([STAND_INS], limit=1)] == ["tracejury_boat_moves"]


def test_a_folder_named_after_a_config_is_that_config_whatever_the_tag(tmp_path: Path) -> None:
    put(tmp_path / "mini" / "a.json", named("a"))
    put(tmp_path / "else" / "b.json", named("b", "Time"))
    found = {one.scenario_id: one.capability for one in read_scenarios([tmp_path])}
    assert found == {"a": "mini", "b": "time"}


def test_rows_of_the_data_set_are_read_from_parquet_and_json(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "scenario_id": f"s{n}", "split": "validation", "data": json.dumps(named(f"s{n}"))}
        for n in (1, 2)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "validation.parquet")
    assert [one.scenario_id for one in read_scenarios([tmp_path / "validation.parquet"])] == ["s1", "s2"]
    one_row = put(tmp_path / "row.json", rows[0])
    assert [one.scenario_id for one in read_scenarios([one_row])] == ["s1"]


def test_an_unknown_capability_or_split_is_refused_with_those_that_exist() -> None:
    with pytest.raises(Gaia2Error, match=r"no capability 'planning'. Try: execution, search"):
        read_scenarios([STAND_INS], capabilities=["planning"])
    with pytest.raises(Gaia2Error, match=r"no split 'test'. Try: validation"):
        check_split("test")


def test_a_capability_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(Gaia2Error, match=r"no scenario of time is here. Try: adaptability, execution"):
        read_scenarios([STAND_INS], capabilities=["time"])


def test_two_scenarios_of_one_id_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "a.json", named("same"))
    other = named("same")
    other["metadata"]["definition"]["seed"] = 5
    put(tmp_path / "b.json", other)
    with pytest.raises(Gaia2Error, match="different scenarios of the id same"):
        read_scenarios([tmp_path])


@pytest.mark.parametrize(
    ("value", "kind"), [("['x']", "list"), ("None", "NoneType")], ids=["a Python list", "a Python None"]
)
def test_a_scenario_that_are_cannot_read_again_is_refused_before_it_is_executed(
    tmp_path: Path, value: str, kind: str
) -> None:
    scenario = named("python")
    oracle = next(event for event in scenario["events"] if event["class_name"] == "OracleEvent")
    oracle["action"]["args"].append({"name": "attendees", "value": value, "value_type": kind})
    with pytest.raises(Gaia2Error, match="'attendees' of event OracleEvent-AGENT-o1 is Python text"):
        read_scenarios([put(tmp_path / "a.json", scenario)])


def test_a_path_or_a_file_that_holds_no_scenario_is_named(tmp_path: Path) -> None:
    with pytest.raises(Gaia2Error, match="there is no file or folder"):
        read_scenarios([tmp_path / "gone"])
    with pytest.raises(Gaia2Error, match="is not an ARE scenario"):
        read_scenarios([put(tmp_path / "x.json", {"hello": 1})])
