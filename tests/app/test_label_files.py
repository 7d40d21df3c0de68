"""Labels in the forms of other tools, through the command: in, out, and back equal; evaluations that traces record."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tracejury.app.cli import main
from tracejury.ingest.readers import read_traces
from tracejury.ingest.store import load, read_transaction
from tracejury.ingest.trace import Trace
from tracejury.judging.judges.trace_text import render_trace
from tracejury.judging.labels import put_labels
from tracejury.judging.reports.filters import Filters
from tracejury.judging.reports.frames import load_frames
from tracejury.judging.store import open_workspace

DATA = Path(__file__).resolve().parents[2] / "data"
T, ROOT, CHILD = "0" * 31 + "5", "05" * 7 + "01", "05" * 7 + "03"


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def answer(*words: object, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code).stdout)


def exported(home: Path, form: str, out: Path) -> bytes:
    run("labels", "export", "--as", form, "--out", out, "--home", home)
    return out.read_bytes()


def attribute(key: str, value: object) -> dict[str, object]:
    kind = "doubleValue" if isinstance(value, float) else "stringValue"
    return {"key": key, "value": {kind: value}}


def evaluation(name: str, value: float | None = None, **more: str) -> dict[str, object]:
    """An event as the GenAI conventions name it."""
    parts = [attribute("gen_ai.evaluation.name", name)]
    parts += [] if value is None else [attribute("gen_ai.evaluation.score.value", value)]
    parts += [attribute(key.replace("__", "."), text) for key, text in more.items()]
    return {"name": "gen_ai.evaluation.result", "timeUnixNano": "5", "attributes": parts}


def trace_file(folder: Path, root_events: list[dict[str, object]], child_events: list[dict[str, object]]) -> Path:
    def span(span_id: str, parent: str, name: str, events: list[dict[str, object]]) -> dict[str, object]:
        return {"traceId": T, "spanId": span_id, "parentSpanId": parent, "name": name, "startTimeUnixNano": "1",
                "endTimeUnixNano": "9", "events": events,
                "attributes": [attribute("gen_ai.operation.name", "chat")]}  # fmt: skip

    spans = [span(ROOT, "", "run", root_events), span(CHILD, ROOT, "chat m", child_events)]
    file = folder / "trace.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}), encoding="utf-8")
    return file


def test_what_an_evaluator_said_is_in_no_text_of_the_trace(tmp_path: Path) -> None:
    """Long words are shown at their span under their own name, but for an evaluator's: in an event or an attribute."""
    words = " and the tide turned before anybody had read the table" * 3
    said = evaluation("Relevance", 0.5, gen_ai__evaluation__explanation="INEVENT" + words)
    file = trace_file(tmp_path, [said], [])
    document = json.loads(file.read_text(encoding="utf-8"))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["attributes"] += [
        attribute("gen_ai.evaluation.explanation", "INATTRIBUTE" + words), attribute("acme.note", "NOTE" + words),
    ]  # fmt: skip
    file.write_text(json.dumps(document), encoding="utf-8")
    (trace,) = read_traces(file)
    assert isinstance(trace, Trace)
    text = render_trace(trace).text
    assert "NOTE" in text
    assert "INEVENT" not in text
    assert "INATTRIBUTE" not in text


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """A workspace with the shipped labels, a score of an own dimension and one of a span."""
    home = tmp_path / "first"
    run("labels", "import", DATA / "labels" / "ada.json", DATA / "labels" / "ben.json", "--home", home)
    more = tmp_path / "more.csv"
    more.write_text(
        f"trace_id,span_id,annotator,dimension,score,comment\n{T},,cleo,helpfulness,2,=fine\n{T},{CHILD},cleo,LC,0,'-no\n",
        encoding="utf-8",
    )
    run("labels", "import", more, "--home", home)
    return home


@pytest.mark.parametrize("form", ["csv", "langfuse", "label-studio"])
def test_what_is_exported_reads_back_equal(labelled: Path, tmp_path: Path, form: str) -> None:
    first = exported(labelled, form, tmp_path / "first.out")
    told = answer("labels", "import", tmp_path / "first.out", "--home", tmp_path / "second")
    assert told["rejected"] == []
    assert exported(tmp_path / "second", form, tmp_path / "second.out") == first
    assert exported(tmp_path / "second", "tracejury", tmp_path / "2.json") == exported(
        labelled, "tracejury", tmp_path / "1.json"
    )


@pytest.mark.parametrize("form", ["csv", "langfuse", "label-studio"])
def test_importing_one_s_own_export_again_adds_nothing(labelled: Path, tmp_path: Path, form: str) -> None:
    exported(labelled, form, tmp_path / "labels.out")
    told = answer("labels", "import", tmp_path / "labels.out", "--home", labelled)
    assert told["new"] == {"errors": 0, "scores": 0, "reviews": 0}


def test_the_csv_is_safe_to_open_in_a_spreadsheet(labelled: Path, tmp_path: Path) -> None:
    exported(labelled, "csv", tmp_path / "l.csv")
    notes = {row["note"] for row in csv.DictReader((tmp_path / "l.csv").open(encoding="utf-8"))}
    assert {"'=fine", "''-no"} <= notes | {"''-no"}
    assert "=fine" not in notes


def test_a_file_of_ratings_is_refused_by_line_until_its_scale_is_told(tmp_path: Path) -> None:
    file = tmp_path / "stars.csv"
    file.write_text(f"trace_id,rater,dimension,score\n{T},ada,LC,5\n", encoding="utf-8")
    refused = run("labels", "import", file, "--home", tmp_path / "w", code=1)
    assert "stars.csv" in refused.output
    assert "line 2" in refused.output
    assert "--scale 'LC:1..5=0..3'" in refused.output
    told = answer("labels", "import", file, "--scale", "1..5=0..3", "--home", tmp_path / "w")
    assert (told["scores"], told["scales"]) == (1, ["1..5=0..3 (1 -> 0, 2 -> 1, 3 -> 2, 4 -> 2, 5 -> 3)"])


def test_a_file_that_is_said_to_be_of_our_form_and_is_not_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "l.json"
    file.write_text(json.dumps([{"trace_id": T, "annotator": "ada", "dimension": "LC", "score": 2}]), encoding="utf-8")
    refused = answer("labels", "import", file, "--as", "tracejury", "--home", tmp_path / "w", code=1)
    assert (refused["scores"], len(refused["rejected"])) == (0, 1)
    assert answer("labels", "import", file, "--home", tmp_path / "w")["scores"] == 1


@pytest.mark.parametrize(
    "options",
    [("--scale", "five stars"), ("--columns", "score"), ("--columns", "points=score"), ("--columns", "score=absent")],
)
def test_options_that_do_not_fit_are_wrong_use(tmp_path: Path, options: tuple[str, str]) -> None:
    file = tmp_path / "l.csv"
    file.write_text(f"trace_id,annotator,dimension,score\n{T},ada,LC,2\n", encoding="utf-8")
    assert "Try:" in run("labels", "import", file, *options, "--home", tmp_path / "w", code=2).output


def test_scores_of_nobody_s_finished_trace_are_told_to_count_nowhere_yet(tmp_path: Path) -> None:
    file = tmp_path / "l.csv"
    file.write_text(f"trace_id,annotator,dimension,score\n{T},ada,LC,2\n", encoding="utf-8")
    assert any("--reviewed" in warning for warning in answer("labels", "import", file, "--home", tmp_path)["warnings"])
    told = answer("labels", "import", file, "--reviewed", "--home", tmp_path)
    assert (told["warnings"], told["reviews"]) == ([], 1)


def test_an_evaluator_s_scores_become_verdicts_and_no_labels(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    rows = [{"trace_id": T, "name": "LC", "annotator_kind": "LLM", "result": {"score": 1, "explanation": "why"}}]
    file.write_text(json.dumps(rows), encoding="utf-8")
    told = answer("labels", "import", file, "--home", tmp_path / "w")
    assert (told["scores"], told["annotators"], told["verdicts"]) == (0, [], {"phoenix LLM": 1})
    run("verdicts", "export", "--out", tmp_path / "v.json", "--home", tmp_path / "w")
    (verdict,) = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))["verdicts"]
    assert (verdict["rubric"], verdict["score"], verdict["rationale"]) == ("LC", 1, "why")


def test_an_evaluator_that_only_scores_is_compared_by_score_and_misses_no_error(tmp_path: Path) -> None:
    home = tmp_path / "w"
    run("ingest", trace_file(tmp_path, [], []), "--home", home)
    labels, scores = tmp_path / "l.csv", tmp_path / "p.json"
    head = "trace_id,span_id,annotator,dimension,score,impact,description\n"
    rows = f"{T},,ada,LC,2,,\n{T},,ada,helpfulness,1,,\n{T},{CHILD},ada,EE,0,,\n{T},{CHILD},ada,LC,,high,repeats\n"
    labels.write_text(head + rows, encoding="utf-8")
    given = [{"trace_id": T, "name": name, "annotator_kind": "LLM", "result": {"score": 1}} for name in
             ("LC", "EE", "helpfulness")]  # fmt: skip
    scores.write_text(json.dumps(given), encoding="utf-8")
    run("labels", "import", labels, "--reviewed", "--home", home)
    run("labels", "import", scores, "--home", home)
    with read_transaction(open_workspace(home).engine) as connection:
        frames = load_frames(connection, Filters(reference="ada"))
    pairs = sorted((row.dimension, row.reference_score, row.judge_score) for row in frames.score_pairs.itertuples())
    assert pairs == [("LC", 2, 1), ("helpfulness", 1, 1)]  # the score of a span is compared with none
    assert (len(frames.error_pairs), len(frames.judged), len(frames.unit_labels)) == (0, 0, 0)


class TestEvaluationsThatTracesRecord:
    def verdicts(self, home: Path, tmp_path: Path) -> list[dict[str, Any]]:
        run("verdicts", "export", "--out", tmp_path / "v.json", "--home", home)
        return list(json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))["verdicts"])

    def test_become_verdicts_of_their_evaluator(self, tmp_path: Path) -> None:
        events = [
            evaluation("Logical Consistency", 2.0, gen_ai__evaluation__explanation="SOUND"),
            evaluation("Relevance", 4.0, gen_ai__evaluation__score__label="good"),
            evaluation("Fluency", error__type="timeout"),
        ]
        file = trace_file(tmp_path, events, [evaluation("Relevance", 0.5), evaluation("Relevance", 1.0)])
        assert answer("ingest", file, "--home", tmp_path / "w")["evaluations"] == 4
        assert answer("ingest", file, "--home", tmp_path / "w")["evaluations"] == 0  # again the same
        said = {(one["rubric"], one["state"]): one for one in self.verdicts(tmp_path / "w", tmp_path)}
        assert said["LC", "scored"]["score"] == 2
        assert said["LC", "scored"]["rationale"] == "SOUND"
        assert said["Fluency", "error"]["reason"] == "the evaluator failed: timeout"
        relevance = [one for one in self.verdicts(tmp_path / "w", tmp_path) if one["rubric"] == "Relevance"]
        assert [one["score"] for one in relevance] == [None, None]
        assert "4 (good)" in relevance[0]["reason"]  # its scale is its own: never guessed
        assert relevance[1]["rationale"] == f"{CHILD}: 0.5\n{CHILD}: 1"

    def test_are_in_no_text_that_judges_and_annotators_read(self, tmp_path: Path) -> None:
        event = evaluation("LC", 0.0, gen_ai__evaluation__explanation="THE JUDGE SAYS BAD")
        run("ingest", trace_file(tmp_path, [event], [event]), "--home", tmp_path / "w")
        with read_transaction(open_workspace(tmp_path / "w").engine) as connection:
            trace = load(connection, T)
        assert "THE JUDGE SAYS BAD" not in render_trace(trace).text
        assert "gen_ai.evaluation" not in render_trace(trace).text

    def test_of_log_records_are_found_by_their_span_or_response(self, tmp_path: Path) -> None:
        file = trace_file(tmp_path, [], [])
        record = evaluation("LC", 1.0)
        log = {"traceId": T, "spanId": ROOT, "eventName": record["name"], "attributes": record["attributes"]}
        logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}
        file.write_text(f"{file.read_text(encoding='utf-8')}\n{json.dumps(logs)}\n", encoding="utf-8")
        assert answer("ingest", file, "--home", tmp_path / "w")["evaluations"] == 1
        assert [one["score"] for one in self.verdicts(tmp_path / "w", tmp_path)] == [1]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("file", "who", "dimension"),
    [("60-langfuse-scores.csv", "langfuse", "helpfulness"), ("64-own.csv", "ada", "LC")],
)
def test_the_files_of_public_reports(shared: Path, tmp_path: Path, file: str, who: str, dimension: str) -> None:
    told = answer("labels", "import", shared / "cases" / "labels" / file, "--home", tmp_path / "w")
    assert (told["scores"], told["rejected"], told["annotators"]) == (1, [], [who])
    exported(tmp_path / "w", "csv", tmp_path / "l.csv")
    rows = [row for row in csv.DictReader((tmp_path / "l.csv").open(encoding="utf-8")) if row["row"] == "score"]
    assert [(row["dimension"], row["score"]) for row in rows] == [(dimension, "2")]


def test_an_import_that_ends_early_says_how_far_it_came_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["trace_id,annotator,dimension,score", *(f"{number:032x},ada,LC,2" for number in range(120))]
    file, home = tmp_path / "scores.csv", tmp_path / "home"
    file.write_text("\n".join(rows), encoding="utf-8")
    batches = iter((True, True, False))
    once = put_labels.put_labels

    def put(*words: Any, **more: Any) -> Any:
        if not next(batches, True):
            raise KeyboardInterrupt
        return once(*words, **more)

    monkeypatch.setattr(put_labels, "put_labels", put)
    stopped = run("labels", "import", file, "--home", home, code=1)
    assert "The import ended early: the labels of 100 of 120 traces are stored. Try: run the same" in stopped.stderr
    assert answer("labels", "import", file, "--home", home)["new"]["scores"] == 20
