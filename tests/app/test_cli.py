"""The command line as its user meets it: flags, JSON, exit codes, messages."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fake_provider import Answer, Provider, Status, verdict
from tests.ingest import envelope_files
from tests.ingest.spans import span, write

from tracejury.app.cli import main
from tracejury.judging.runs.run_control import request_status, run_spec, watch
from tracejury.judging.runs.run_store import RunStore
from tracejury.judging.store import open_workspace

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "data"
TRAIL = DATA / "samples" / "trail"


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def answer(*words: object, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code).stdout)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the sample traces; only ever copied."""
    made = tmp_path_factory.mktemp("ingested") / "w"
    run("ingest", TRAIL, "--home", made)
    return made


@pytest.fixture
def home(ingested: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ingested, tmp_path / "w"))


def first_trace(home: Path) -> str:
    return str(answer("traces", "--home", home)[0]["trace_id"])


class TestIngest:
    def test_says_what_came_of_it_and_again_that_all_is_there(self, tmp_path: Path) -> None:
        first = answer("ingest", TRAIL, "--home", tmp_path)
        again = answer("ingest", TRAIL, "--home", tmp_path)
        assert first["traces"] == len(list(TRAIL.glob("*.json")))
        assert (again["traces"], again["duplicates"], again["rejected"]) == (0, first["traces"], [])
        assert set(first) == {
            "traces",
            "spans",
            "duplicates",
            "completed",
            "waiting",
            "rejected",
            "warnings",
            "evaluations",
        }

    def test_says_what_a_late_file_adds_and_reads_several_paths_together(self, tmp_path: Path) -> None:
        for name, spans in (("a", envelope_files.otlp_spans()[:2]), ("b", envelope_files.otlp_spans()[2:])):
            request = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
            (tmp_path / f"{name}.json").write_text(json.dumps(request), encoding="utf-8")
        a, b = tmp_path / "a.json", tmp_path / "b.json"
        answer("ingest", a, "--home", tmp_path / "one")
        (told,) = answer("ingest", b, "--home", tmp_path / "one")["completed"]
        assert told.endswith(f"is now completed by {b}: 2 spans and 2 messages added")
        both = answer("ingest", a, b, "--merge", "--home", tmp_path / "two")
        assert (both["traces"], both["spans"], both["completed"]) == (1, 4, [])

    def test_a_bad_file_is_named_with_place_and_remedy_and_the_rest_goes_on(self, tmp_path: Path) -> None:
        bad = tmp_path / "bad.json"
        bad.write_text('{"trace_id": "x", "spans": [', encoding="utf-8")
        output = answer("ingest", bad, TRAIL, "--home", tmp_path / "w", code=1)
        (rejected,) = output["rejected"]
        assert rejected["file"] == str(bad)
        assert rejected["reason"]
        assert rejected["remedy"]
        assert output["traces"] == len(list(TRAIL.glob("*.json")))

    def test_standard_input_is_read(self, tmp_path: Path) -> None:
        data = next(TRAIL.glob("*.json")).read_bytes()
        result = CliRunner().invoke(main, ["ingest", "-", "--home", str(tmp_path), "--json"], input=data)
        assert json.loads(result.stdout)["traces"] == 1

    def test_an_unknown_format_is_named_with_those_there_are(self, tmp_path: Path) -> None:
        output = answer("ingest", TRAIL, "--home", tmp_path, "--format", "nonsense", code=1)
        assert "trail" in output["rejected"][0]["remedy"]

    def test_secrets_are_masked_before_anything_is_stored(self, tmp_path: Path) -> None:
        trace = json.loads(next(TRAIL.glob("*.json")).read_bytes())
        key = "sk-" + "proj-" + "a1B2" * 12
        trace["spans"][0]["span_attributes"]["note"] = f"mail jo@harbour.example, key {key}"
        (tmp_path / "t.json").write_text(json.dumps(trace), encoding="utf-8")
        run("ingest", tmp_path / "t.json", "--redact", "--home", tmp_path / "w")
        attributes = answer("spans", trace["trace_id"], "--home", tmp_path / "w")[0]["attributes"]
        assert "jo@harbour.example" not in attributes["note"]
        assert b"jo@harbour.example" not in (tmp_path / "w" / "tracejury.db").read_bytes()


class TestTraces:
    def test_the_list_goes_to_csv(self, home: Path, tmp_path: Path) -> None:
        run("traces", "--home", home, "--csv", tmp_path / "traces.csv")
        rows = list(csv.DictReader(io.StringIO((tmp_path / "traces.csv").read_text(encoding="utf-8"))))
        assert len(rows) == len(list(TRAIL.glob("*.json")))
        assert int(rows[0]["spans"]) > 0

    def test_spans_go_to_csv_parquet_and_json(self, home: Path, tmp_path: Path) -> None:
        trace = first_trace(home)
        run("spans", trace[:8], "--home", home, "--csv", tmp_path / "s.csv", "--parquet", tmp_path / "s.parquet")
        rows = answer("spans", trace, "--home", home)
        assert len(list(csv.DictReader((tmp_path / "s.csv").open(encoding="utf-8")))) == len(rows)
        assert (tmp_path / "s.parquet").stat().st_size > 0

    def test_text_is_what_a_judge_reads(self, home: Path) -> None:
        text = run("text", first_trace(home), "--home", home).stdout
        assert text.startswith(f"Trace {first_trace(home)}")
        assert "[S1]" in text

    def test_an_unknown_trace_is_said_with_what_to_do(self, home: Path) -> None:
        result = run("text", "zzzz", "--home", home, code=1)
        assert "tracejury traces" in result.output

    def test_an_ambiguous_beginning_is_refused(self, home: Path) -> None:
        assert "fits" in run("text", "", "--home", home, code=1).output


class TestOpinions:
    def test_labels_of_trail_get_the_annotator_that_is_named(self, home: Path) -> None:
        labels = DATA / "labels" / "trail"
        own = answer("labels", "import", labels, "--as", "trail", "--annotator", "ada", "--home", home)
        other = answer("labels", "import", labels, "--as", "trail", "--home", home)
        assert (own["annotators"], other["annotators"]) == (["ada"], ["trail"])
        assert own["new"] == other["new"]

    @pytest.mark.parametrize("form", ["auto", "tracejury"])
    def test_an_annotator_in_place_of_those_named_in_our_own_form_is_refused(self, form: str, home: Path) -> None:
        words = ("labels", "import", DATA / "labels" / "ada.json", "--as", form, "--annotator", "eve", "--home", home)
        assert "leave out --annotator" in run(*words, code=2).output

    def test_a_scale_for_labels_that_have_one_is_refused(self, home: Path) -> None:
        words = ("labels", "import", DATA / "labels" / "trail", "--as", "trail", "--scale", "1..5=0..3", "--home", home)
        assert "leave out --columns and --scale" in run(*words, code=2).output

    def test_labels_go_in_and_out_unchanged(self, home: Path, tmp_path: Path) -> None:
        output = answer("labels", "import", DATA / "labels" / "ada.json", DATA / "labels" / "ben.json", "--home", home)
        assert output["errors"] > 0
        assert output["annotators"] == ["ada", "ben"]
        first, second = tmp_path / "1.json", tmp_path / "2.json"
        run("labels", "export", "--out", first, "--home", home)
        run("labels", "import", first, "--home", tmp_path / "other")
        run("labels", "export", "--out", second, "--home", tmp_path / "other")
        assert first.read_bytes() == second.read_bytes()

    def test_the_csv_tells_reviewed_labelled_and_untouched_apart(self, home: Path, tmp_path: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", "--home", home)
        run("ingest", DATA / "samples" / "otlp" / "ferry.otlp.json", "--home", home)
        run("labels", "export", "--out", tmp_path / "l.csv", "--as", "csv", "--home", home)
        rows = list(csv.DictReader((tmp_path / "l.csv").open(encoding="utf-8")))
        assert {"review", "error", "score", "untouched"} == {row["row"] for row in rows}

    def test_trail_annotations_are_mended_by_name_and_importing_again_adds_nothing(self, home: Path) -> None:
        output = answer("labels", "import", DATA / "labels" / "trail", "--as", "trail", "--home", home)
        assert any("repaired_json" in warning for warning in output["warnings"])
        again = answer("labels", "import", DATA / "labels" / "trail", "--as", "trail", "--home", home)
        assert again["new"] == {"errors": 0, "scores": 0, "reviews": 0}

    def test_every_judge_file_ends_as_findings_or_as_a_named_failure(self, home: Path) -> None:
        folder = DATA / "samples" / "predictions" / "hasty-judge"
        output = answer("verdicts", "import", folder, "--judge-model", "hasty", "--home", home, code=1)
        assert output["files"] == len(list(folder.iterdir())) == sum(output["states"].values())
        assert len(output["failures"]) == 1
        assert output["failures"][0]["reason"]

    def test_the_whole_path_to_a_table(self, home: Path, tmp_path: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", DATA / "labels" / "ben.json", "--home", home)
        planned = answer("judge", "--home", home, "--dry-run")
        assert (planned["run"], planned["cells"], planned["states"]) == (None, 0, {})
        assert "nothing is written" in run("judge", "--model", "checks", "--home", home, "--dry-run").output
        judged = answer("judge", "--home", home)
        assert judged["states"]["scored"] > 0
        assert (judged["run"], judged["cells"]) == (1, planned["to_judge"])  # a dry run writes nothing
        assert answer("judge", "--home", home)["cells"] == 0
        assert answer("match", "--home", home)["matches"] > 0
        output = answer("report", "--out", tmp_path / "r", "--home", home, "--draws", "200", "--inputs")
        table = list(csv.DictReader((tmp_path / "r" / "table_03_caught.csv").open(encoding="utf-8")))
        assert {row["dimension"] for row in table} == {"LC", "EE", "PQ", "PA", "GF", "TS", "TC"}
        assert all(int(row["n"]) > 0 for row in table)
        manifest = json.loads((tmp_path / "r" / "manifest.json").read_bytes())
        assert manifest["reference"] in {"ada", "ben"}
        assert len(manifest["files"]) == len(output["files"])
        for one in manifest["files"]:
            assert one["sha256"] == sha256((tmp_path / "r" / one["file"]).read_bytes()).hexdigest()

    def test_a_report_against_the_majority_can_be_made_again_from_its_inputs(self, home: Path, tmp_path: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", DATA / "labels" / "ben.json", "--home", home)
        run("judge", "--home", home)
        run("match", "--home", home)
        words = ("report", "--draws", "20", "--out")
        output = answer(*words, tmp_path / "r", "--home", home, "--reference", "majority", "--inputs")
        assert (output["reference"], output["selection"]["reference"]) == ("majority", "majority")
        errors = next(row for row in output["votes"] if row["about"] == "errors")
        assert errors["n"] == errors["majority"] + errors["tied"] + errors["minority"] > 0
        run(*words, tmp_path / "again", "--from-csv", tmp_path / "r")  # `inputs` in it is what is read
        made = {path.name: path.read_bytes() for path in (tmp_path / "again").glob("*.csv")}
        assert len(made) > 30
        assert made == {name: (tmp_path / "r" / name).read_bytes() for name in made}
        run("labels", "import", DATA / "labels" / "ada.json", "--home", tmp_path / "alone")
        alone = run(*words, tmp_path / "y", "--home", tmp_path / "alone", "--reference", "majority")
        assert "no trace was submitted by two annotators" in alone.stderr

    def test_a_report_matches_by_rule_first_when_asked_and_says_so(self, home: Path, tmp_path: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", "--home", home)
        run("judge", "--home", home)
        words = ("report", "--home", home, "--draws", "0", "--table", "table_03_caught", "--out")
        run(*words, tmp_path / "before")
        assert all(row["reason"].endswith(": no matches proposed yet") for row in _rows(tmp_path / "before"))
        run(*words, tmp_path / "wrong", "--match", "--judge-model", "nobody", code=2)
        done = run(*words, tmp_path / "r", "--match")
        assert "matched by rule: " in done.stderr
        counted = json.loads((tmp_path / "r" / "manifest.json").read_bytes())["matched_by_rule"]
        assert counted["new"] == counted["matches"] > 0  # the wrong name before it wrote nothing
        assert sum(int(row["tp"]) for row in _rows(tmp_path / "r")) > 0

    def test_every_format_is_written(self, home: Path, tmp_path: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", "--home", home)
        run("judge", "--home", home)
        run("report", "--out", tmp_path / "r", "--home", home, "--table", "table_03_caught", "--format",
            "csv,json,md,tex,parquet", "--draws", "0")  # fmt: skip
        assert {path.suffix for path in (tmp_path / "r").iterdir()} == {".csv", ".json", ".md", ".tex", ".parquet"}

    def test_a_report_needs_no_workspace(self, tmp_path: Path) -> None:
        rows = "trace_id,error_id,impact,dimension,relevant,caught,localized\nt1,e1,high,LC,true,true,false\n"
        (tmp_path / "error_pairs.csv").write_text(rows, encoding="utf-8")
        run("report", "--from-csv", tmp_path, "--out", tmp_path / "r")
        (row,) = csv.DictReader((tmp_path / "r" / "table_03_caught.csv").open(encoding="utf-8"))
        assert (row["tp"], row["precision"], row["recall"]) == ("1", "1.0000", "1.0000")

    def test_a_report_from_files_names_what_it_read_and_what_it_left(self, tmp_path: Path) -> None:
        (tmp_path / "score_pairs.csv").write_text(
            "\ufefftrace_id;dimension;reference_score;judge_score\n007;LC;3;\n008;LC;2;2\n", "utf-8"
        )
        (tmp_path / "scores.csv").write_text("x\n", encoding="utf-8")
        done = run("report", "--from-csv", tmp_path, "--out", tmp_path / "r", "--draws", "0")
        assert "scores.csv: skipped, because no input has this name" in done.stderr
        (row,) = csv.DictReader((tmp_path / "r" / "table_04_scores.csv").open(encoding="utf-8"))
        assert (row["n"], row["missing"], row["off_by_one"]) == ("1", "1", "1.000")
        manifest = json.loads((tmp_path / "r" / "manifest.json").read_bytes())
        assert [(one["file"], one["rows"]) for one in manifest["from_csv"]] == [("score_pairs.csv", 2)]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--table", "table_03_caught"), "table_03_caught needs error_pairs.csv"),
            (("--reference", "ada"), "--reference is for a workspace"),
            (("--reference", "majority"), "--reference is for a workspace"),
            (("--trace-format", "trail"), "--trace-format is for a workspace"),
            (("--guideline", "2"), "--guideline is for a workspace"),
            (("--no-blind-only",), "--no-blind-only is for a workspace"),
            (("--tolerance", "exact"), "--tolerance is for a workspace"),
            (("--match",), "--match is for a workspace"),
            ((), "score_pairs.csv, line 2: judge_score is 'x'; expected a number"),
        ],
    )
    def test_a_report_from_files_says_what_is_wrong_and_where(
        self, tmp_path: Path, words: tuple[str, ...], message: str
    ) -> None:
        wrong = "x" if not words else "1"
        (tmp_path / "score_pairs.csv").write_text(
            f"trace_id,dimension,reference_score,judge_score\n1,LC,3,{wrong}\n", "utf-8"
        )
        done = run("report", "--from-csv", tmp_path, "--out", tmp_path / "r", *words, code=2)
        assert message in " ".join(done.output.replace("│", " ").split())

    def test_two_sides_are_compared(self, home: Path, tmp_path: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", DATA / "labels" / "ben.json", "--home", home)
        for name in ("careful-judge", "hasty-judge"):  # each with an answer that cannot be read
            folder = DATA / "samples" / "predictions" / name
            run("verdicts", "import", folder, "--judge-model", name, "--home", home, code=1)
        run("judge", "--home", home)
        run("match", "--home", home)
        words = ("report", "--home", home, "--reference", "ada", "--draws", "50", "--out", tmp_path / "r")
        run(*words, "--compare", "careful-judge", "hasty-judge", "--table", "compared_mcnemar")
        row, other = csv.DictReader((tmp_path / "r" / "compared_mcnemar.csv").open(encoding="utf-8"))
        assert (row["dimension"], int(row["n"]) > 0) == ("trail", True)
        assert (row["kind"], other["kind"]) == ("caught", "localized")
        tables = [("--table", f"compared_{of}") for of in ("errors", "mcnemar", "scores")]
        told = run(*words, "--compare", "checks", "person=ben", *chain.from_iterable(tables)).output
        assert re.search(r"p_holm by Holm: over [\d,]+ p-values in compared_errors, [1-9]+ in compared_mcnemar", told)
        rows = csv.DictReader((tmp_path / "r" / "compared_scores.csv").open(encoding="utf-8"))
        assert "LC" in {row["dimension"] for row in rows}
        assert json.loads((tmp_path / "r" / "manifest.json").read_bytes())["compared"] == ["checks", "person=ben"]
        assert "there are careful-judge, checks" in run(*words, "--compare", "checks", "nobody", code=2).output
        apart = run(*words, "--compare", "careful-judge", "checks", "--table", "compared_errors")
        assert "the two sides share no dimension: each counts as one judge" in apart.output
        rows = list(csv.DictReader((tmp_path / "r" / "compared_errors.csv").open(encoding="utf-8")))
        assert {row["dimension"] for row in rows} == {"any"}
        assert "gaia2_gsr has no data" in run(*words, "--table", "gaia2_gsr", code=2).output

    @pytest.mark.parametrize(
        "words",
        [
            ("--table", "nonsense"),
            ("--format", "docx"),
            ("--table", "compared_scores"),
            ("--judge-model", "nobody"),
            ("--version", "000000"),
            ("--split", TRAIL / next(TRAIL.glob("*.json")).name),
        ],
    )
    def test_wrong_use_of_report_ends_with_two(self, home: Path, tmp_path: Path, words: tuple[object, ...]) -> None:
        run("report", "--out", tmp_path / "r", "--home", home, *words, code=2)


def _rows(folder: Path) -> list[dict[str, str]]:
    """The rows of Table 3 that a report wrote."""
    with (folder / "table_03_caught.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


class TestJudgeByModel:
    def words(self, home: Path, provider: Provider) -> tuple[object, ...]:
        return (
            "judge",
            "--home",
            home,
            "--model",
            "openai/scripted",
            "--api-base",
            provider.base_url,
            "--dimensions",
            "LC",
        )

    @pytest.fixture(autouse=True)
    def _key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "none")

    def test_cells_are_scored_and_a_second_run_of_failed_only_mends_the_rest(self, home: Path) -> None:
        traces = [row["trace_id"] for row in answer("traces", "--home", home)]
        broken = {traces[0], traces[3]}

        def script(request: Any) -> Answer:
            return Answer(text="I give it a 2" if any(trace in request.prompt for trace in broken) else verdict(2))

        with Provider(script) as provider:
            output = answer(*self.words(home, provider), code=1)
            assert output["states"] == {"scored": len(traces) - 2, "unparsable": 2}
            assert {failure["trace_id"] for failure in output["failures"]} == broken
            calls = len(provider.log.requests)
            broken.clear()
            again = answer(*self.words(home, provider), "--failed-only")
            assert len(provider.log.requests) == calls + 2
        assert (again["run"], again["judged"]) == (output["run"], 2)
        assert again["run_state"]["states"] == {"scored": len(traces)}

    def test_authentication_stops_the_run_and_says_so(self, home: Path) -> None:
        with Provider(lambda _request: Status(code=401, message="bad key")) as provider:
            output = answer(*self.words(home, provider), code=1)
        assert output["status"] == "paused"
        assert "key" in output["message"] or "401" in output["message"] or "authent" in output["message"].lower()

    def test_a_dry_run_calls_nothing(self, home: Path) -> None:
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            output = answer(*self.words(home, provider), "--dry-run")
            assert provider.log.requests == []
        assert output["traces"] == len(list(TRAIL.glob("*.json")))
        assert "[S1]" in output["prompt"]["user"]

    def test_a_price_makes_the_cost_of_an_unknown_model_known(self, home: Path) -> None:
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            words = (*self.words(home, provider), "--dry-run")
            unknown = answer(*words)["estimate"][-1]
            known = answer(*words, "--price", "3,15,0.3")["estimate"][-1]
            output = answer(*self.words(home, provider), "--price", "openai/scripted=3,15", "--budget", "5")
            assert provider.log.requests
        ways = ("naive", "deduplicated", "cached", "batch")
        assert [unknown[way] for way in ways] == [None] * 4
        assert known["naive"] > known["deduplicated"] == known["cached"] > 0  # one call a trace: nothing to share
        assert known["batch"] is None  # no price of a batch was given
        run_state = output["run_state"]
        paid = run_state["prompt_tokens"] * 3e-6 + run_state["completion_tokens"] * 15e-6
        assert (output["cost_usd"], output["unpriced"]) == (pytest.approx(paid), 0)

    @pytest.mark.parametrize(
        ("price", "message"),
        [("3", "INPUT,OUTPUT"), ("-3,1", "0 or more"), ("openai/other=3,1", "not a model of this run")],
    )
    def test_what_is_no_price_of_this_run_ends_with_two(self, home: Path, price: str, message: str) -> None:
        output = run("judge", "--home", home, "--model", "openai/x", "--price", price, code=2).output
        assert message in " ".join(output.split())

    def test_a_model_of_no_known_provider_ends_with_two(self, home: Path) -> None:
        output = run("judge", "--home", home, "--model", "private-model", code=2).output
        assert "name it as PROVIDER/MODEL, such as openai/private-model" in " ".join(output.split())

    def test_replies_of_an_earlier_run_are_taken_or_asked_for_anew(self, home: Path) -> None:
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            words = self.words(home, provider)
            answer(*words)
            calls = len(provider.log.requests)
            again = answer(*words)
            assert (len(provider.log.requests), again["run_state"]["replies"]) == (calls, 0)
            answer(*words, "--no-cache")
            assert len(provider.log.requests) == 2 * calls

    def test_a_jury_gives_one_score_and_says_its_ties(self, home: Path) -> None:
        scores = {"one": 1, "two": 2, "three": 2}
        with Provider(lambda request: Answer(text=verdict(scores[request.body["model"]]))) as provider:
            words = ("judge", "--home", home, "--api-base", provider.base_url, "--dimensions", "LC", "--mode", "jury")
            tied = run(*words, "--model", "openai/one,openai/two").output
            joint = answer(*words, "--model", "openai/one,openai/two,openai/three")["jury"]
            mean = answer(*words, "--model", "openai/one,openai/two", "--jury-rule", "mean")["jury"]
        assert "tie of 1 and 2: LC on " in tied
        assert {(row["score"], row["tied"], row["openai/one"]) for row in joint} == {(2.0, "", 1)}
        assert {row["score"] for row in mean} == {1.5}

    def test_an_unknown_dimension_ends_with_two(self, home: Path) -> None:
        told = run("judge", "--home", home, "--model", "openai/x", "--dimensions", "XX", code=2).output
        assert "no rubric is called 'XX'" in told
        assert "no dimension XX" in run("judge", "--home", home, "--dimensions", "XX", code=2).output

    def test_a_budget_that_stops_a_run_ends_with_three_and_the_run_goes_on_with_another(self, home: Path) -> None:
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            words = (*self.words(home, provider), "--price", "3,15")
            told = answer(*words, "--budget", "0", code=3)
            assert (told["status"], provider.log.requests) == ("out of budget", [])
            assert "the budget of $0.0000 is reached" in told["message"]
            again = answer(*words, "--budget", "5")
        assert (again["run"], again["status"]) == (told["run"], "done")

    def test_a_run_is_resumed_by_its_number_unless_somebody_stopped_it_or_another_process_has_it(
        self, home: Path
    ) -> None:
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            words = (*self.words(home, provider), "--price", "3,15")
            key = answer(*words, "--budget", "0", code=3)["run"]
            engine = open_workspace(home).engine
            request_status(engine, key, "queued")
            request_status(engine, key, "cancelled")
            left = answer("judge", "--home", home, "--resume", key, "--if-queued", code=1)
            assert (left["status"], provider.log.requests) == ("cancelled", [])
            other = RunStore(engine, key)
            other.take(resumes=True)
            held = run("judge", "--home", home, "--resume", key, code=1).output
            assert f"run {key} is at work in process" in held
            assert "is at work in process" in run(*words, "--budget", "5", code=1).output
            assert run_spec(engine, key).budget_usd == 0  # nothing of it was changed
            other.end("paused")
            assert answer("judge", "--home", home, "--resume", key, code=3)["run"] == key
        assert "there is no run 99" in run("judge", "--home", home, "--resume", 99, code=2).output

    def test_a_run_that_cannot_be_resumed_is_paused_with_its_reason(self, home: Path) -> None:
        (home / "rubrics").mkdir()
        path = home / "rubrics" / "safe.toml"
        shipped = (ROOT / "judging" / "judges" / "rubrics" / "LC.toml").read_text(encoding="utf-8")
        path.write_text(shipped.replace('key = "LC"', 'key = "SAFE"'), encoding="utf-8")
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            words = ("judge", "--home", home, "--model", "openai/x", "--api-base", provider.base_url)
            key = answer(*words, "--dimensions", "SAFE", "--price", "3,15", "--budget", "0", code=3)["run"]
        path.write_text("key = ", encoding="utf-8")
        told = run("judge", "--home", home, "--resume", key, code=2).output
        assert "left out: " in told
        assert "safe.toml: not valid TOML" in told
        stands = watch(open_workspace(home).engine, key)
        assert (stands["status"], "no rubric for SAFE" in str(stands["message"])) == ("paused", True)

    def test_a_broken_rubric_stops_no_judge(self, home: Path) -> None:
        (home / "rubrics").mkdir()
        (home / "rubrics" / "half.toml").write_text('key = "HALF"\n', encoding="utf-8")
        with Provider(lambda _request: Answer(text=verdict(2))) as provider:
            told = run(*self.words(home, provider)).output
        assert "half.toml: title: is missing. Try: write it" in told
        assert "run 1 done" in told


class TestRubric:
    def test_a_new_rubric_is_written_checked_and_shown(self, home: Path) -> None:
        path = Path(run("rubric", "new", "SAFE", "--home", home).stdout.strip())
        assert path == home / "rubrics" / "SAFE.toml"
        told = answer("rubric", "check", path, code=1)
        assert len(told["faults"]) == 6
        assert told["prompt"] is None
        assert "title: is empty. Try: write it" in run("rubric", "check", path, code=1).output
        text = path.read_text(encoding="utf-8").replace(' ""\n', ' "words"\n')
        path.write_text(text.replace('"""\n"""', '"""\nNo harm is done.\n"""'), encoding="utf-8")
        told = answer("rubric", "check", path)
        assert (told["key"], told["faults"]) == ("SAFE", [])
        assert "No harm is done." in told["prompt"]["user"]
        assert "No harm is done." in run("rubric", "check", path).stdout

    def test_a_key_that_is_taken_is_a_fault(self, home: Path, tmp_path: Path) -> None:
        shipped = (ROOT / "judging" / "judges" / "rubrics" / "LC.toml").read_text(encoding="utf-8")
        (tmp_path / "mine.toml").write_text(shipped, encoding="utf-8")
        assert "'LC' is taken by a shipped rubric" in run("rubric", "check", tmp_path / "mine.toml", code=1).output
        assert "is taken by another rubric" in run("rubric", "new", "LC", "--home", home, code=1).output

    def test_a_shipped_rubric_is_checked_like_any_other_and_a_fault_is_one_fault(self, tmp_path: Path) -> None:
        shipped = ROOT / "judging" / "judges" / "rubrics" / "LC.toml"
        assert "no fault" in run("rubric", "check", shipped).output
        shutil.copy(shipped, tmp_path / "LC.toml")
        assert "LC.toml: 1 fault\n" in run("rubric", "check", tmp_path / "LC.toml", code=1).output


class TestVerdictsImport:
    def test_each_answer_that_failed_is_named_and_the_command_ends_with_one(self, home: Path) -> None:
        words = ("verdicts", "import", DATA / "samples" / "predictions" / "hasty-judge", "--judge-model", "hasty")
        (failure,) = answer(*words, "--home", home, code=1)["failures"]
        named = run(*words, "--home", home, code=1).output
        assert f"too long: the answer on trace {failure['trace_id']}: {failure['reason']}" in named


class TestMatchByModel:
    @pytest.fixture
    def judged(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        run("labels", "import", DATA / "labels" / "ada.json", "--home", home)
        run(
            "verdicts",
            "import",
            DATA / "samples" / "predictions" / "hasty-judge",
            "--judge-model",
            "hasty",
            "--home",
            home,
            code=1,  # one answer cannot be read
        )
        run("match", "--home", home)
        return home

    def test_a_model_proposes_and_its_failures_are_named(self, judged: Path) -> None:
        words = ("match", "--home", judged, "--model", "openai/scripted", "--api-base")
        pair = {"error": "E1", "finding": "F1", "confidence": 0.9, "reason": "the same step"}
        with Provider(lambda _request: Answer(text="no idea")) as provider:
            failed = answer(*words, provider.base_url, code=1)
        assert failed["answered"] == 0
        assert {one["state"] for one in failed["failures"]} == {"unparsable"}
        with Provider(lambda _request: Answer(text=json.dumps({"pairs": [pair]}))) as provider:
            output = answer(*words, provider.base_url)
            again = answer(*words, provider.base_url)
            assert len(provider.log.requests) == output["questions"]
        assert output["matches"] == output["answered"] == output["questions"] == len(failed["failures"]) > 0
        assert again["asked_before"] == output["questions"]
        assert output["author"].startswith("llm:openai/scripted@")
        taken = answer("match", "--home", judged, "--model", "openai/scripted", "--withdraw")
        assert taken["withdrawn"] == output["matches"]

    def test_a_budget_for_a_model_of_unknown_price_is_refused(self, judged: Path) -> None:
        done = run("match", "--home", judged, "--model", "openai/nobody-knows", "--budget", "1", code=2)
        assert "a budget needs prices" in " ".join(done.output.replace("│", " ").split())

    def test_a_price_of_ones_own_makes_the_cost_known_and_a_budget_possible(self, judged: Path) -> None:
        def ask(*more: str) -> tuple[dict[str, Any], int]:
            with Provider(lambda _request: Answer(text='{"pairs": []}')) as provider:
                words = ("match", "--home", judged, "--model", "openai/scripted", "--api-base", provider.base_url)
                output = answer(*words, "--concurrency", "1", *more, code=3)
                return output, len(provider.log.requests)

        free, _ = ask("--price", "3,15", "--budget", "0")
        assert (free["answered"], free["stopped"]) == (0, "the budget of $0 is spent")
        output, calls = ask("--price", "3,15", "--budget", "0.000001")
        assert (calls, output["answered"], output["unknown_cost"]) == (1, 1, 0)
        assert output["stopped"] == "the budget of $1e-06 is spent"
        assert output["cost_usd"] == pytest.approx(output["prompt_tokens"] * 3e-6 + output["completion_tokens"] * 15e-6)
        assert output["prompt_tokens"] > 0

    @pytest.mark.parametrize("words", [("--model", "openai/x", "--price", "3"), ("--price", "3,15")])
    def test_what_is_no_price_of_a_model_ends_with_two(self, judged: Path, words: tuple[str, ...]) -> None:
        output = " ".join(run("match", "--home", judged, *words, code=2).output.replace("│", " ").split())
        assert "a price is INPUT,OUTPUT" in output or "--price needs the model" in output

    def test_withdrawing_needs_the_model(self, judged: Path) -> None:
        run("match", "--home", judged, "--withdraw", code=2)


class TestVerify:
    def test_a_whole_workspace_has_no_problem(self, home: Path) -> None:
        run("labels", "import", DATA / "labels" / "ada.json", "--home", home)
        labels_elsewhere = [p for p in answer("verify", "--home", home)["problems"] if "label" not in p["subject"]]
        assert labels_elsewhere == []

    def test_a_changed_span_and_a_lost_index_are_found_and_the_index_is_mended(self, home: Path) -> None:
        from tracejury.ingest.store import write_transaction
        from tracejury.judging.store import open_workspace

        with write_transaction(open_workspace(home).engine) as connection:
            connection.exec_driver_sql("UPDATE span SET name = 'other' WHERE span_key = 1")
            connection.exec_driver_sql("INSERT INTO span_fts(span_fts) VALUES ('delete-all')")
        problems = [problem["problem"] for problem in answer("verify", "--home", home, code=1)["problems"]]
        assert any("differs" in problem for problem in problems)
        assert any("search index" in problem for problem in problems)
        run("verify", "--repair", "--home", home, code=1)
        left = [problem["problem"] for problem in answer("verify", "--home", home, code=1)["problems"]]
        assert not any("search index" in problem for problem in left)


def test_the_demo_fills_a_workspace(tmp_path: Path) -> None:
    run("demo", "--no-serve", "--home", tmp_path)
    assert len(answer("traces", "--home", tmp_path)) > 10


@pytest.mark.shared
def test_the_issues_numbers_on_the_shared_trail_files(shared: Path, tmp_path: Path) -> None:
    output = answer("ingest", shared / "trail" / "traces", "--home", tmp_path)
    assert (output["traces"], output["spans"], output["rejected"]) == (69, 2029, [])
    assert output["warnings"]["duplicate_span"] == 1
    assert answer("ingest", shared / "trail" / "traces", "--home", tmp_path)["duplicates"] == 69
    labels = answer("labels", "import", shared / "trail" / "annotations", "--as", "trail", "--home", tmp_path)
    assert labels["errors"] == 404
    assert any("a96c6811716c0473b86a23321db79c34" in warning for warning in labels["warnings"])
    judged = answer("judge", "--model", "checks", "--home", tmp_path)
    assert sum(judged["states"].values()) == 69 * 7
    run("report", "--out", tmp_path / "r", "--home", tmp_path, "--split", shared / "trail" / "gaia_split.json")


def empty_and_full(folder: Path) -> tuple[Path, Path]:
    """A trace of names and times, and one with messages."""
    said = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": '[{"role": "assistant", "content": "Six."}]'}
    full = write(folder / "full.json", span("chat", said), trace_id="cd" * 16)
    return write(folder / "empty.json", span("step")), full


def test_a_trace_with_nothing_to_read_is_refused_and_the_others_are_judged(tmp_path: Path) -> None:
    home = tmp_path / "w"
    told = run("ingest", *empty_and_full(tmp_path), "--home", home)
    assert "nothing_to_read: the trace holds names and times only" in told.stderr
    judged = run("judge", "--home", home, code=1)
    assert f"refused {'ab' * 16}" in judged.stderr
    assert answer("judge", "--home", home, code=1)["traces"] == 1
    assert answer("judge", "--home", home, "--even-if-empty")["traces"] == 2


def test_judging_only_what_holds_nothing_to_read_ends_with_the_way_out(tmp_path: Path) -> None:
    home = tmp_path / "w"
    run("ingest", empty_and_full(tmp_path)[0], "--home", home)
    assert "Try: --even-if-empty" in run("judge", "abab", "--home", home, code=1).stderr


def test_a_file_without_spans_gets_no_map_and_is_told_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "acme.json"
    file.write_text('{"acme": {"items": [{"q": "When?"}]}}', encoding="utf-8")
    result = run("map", "suggest", file, code=1)
    assert result.stdout == ""
    assert "write a row for each span with trace_id" in result.stderr


def test_a_map_is_proposed_and_used(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", span("step", {"acme.type": "llm", "acme.prompt": "How deep?"}))
    proposed = tmp_path / "acme.toml"
    proposed.write_text(run("map", "suggest", file).stdout, encoding="utf-8")
    run("ingest", file, "--map", proposed, "--home", tmp_path / "w")
    (row,) = answer("traces", "--home", tmp_path / "w")
    assert (row["llm_spans"], row["goal"]) == (1, "How deep?")


def test_the_maps_of_the_workspace_are_always_used_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", span("step", {"acme.type": "llm", "acme.prompt": "How deep?"}))
    maps = tmp_path / "w" / "maps"
    maps.mkdir(parents=True)
    (maps / "acme.toml").write_text('[fields]\ninput_messages = "acme.prompt"\n', encoding="utf-8")
    run("ingest", file, "--home", tmp_path / "w")
    assert answer("traces", "--home", tmp_path / "w")[0]["messages"] == 1
    (maps / "bad.toml").write_text("[fields]\nfoo = 'x'\n", encoding="utf-8")
    assert "line 2: `foo` is not a field" in run("ingest", file, "--home", tmp_path / "w", code=2).stderr
