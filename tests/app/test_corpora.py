"""The commands about corpora as their user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from tests.ingest.corpora import SAMPLES, otlp_file

from tracejury.app.cli import main


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["corpus", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def answer(*words: object, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code).stdout)


def test_build_says_what_the_corpus_holds_and_again_that_it_knows_all(tmp_path: Path) -> None:
    file, url = otlp_file(tmp_path / "a.jsonl", 1, 2), tmp_path / "corpus"
    (tmp_path / "bad.json").write_text("{", encoding="utf-8")
    first = answer("build", file, tmp_path / "bad.json", "--out", url, "--workers", 1, code=1)
    assert (first["partitions"], first["rejected"]) == (1, 1)
    assert (first["rows"]["traces"], first["rows"]["spans"]) == (2, 20)
    again = answer("build", file, "--out", url)
    assert (again["partitions"], again["known_files"]) == (0, 2)
    assert "holds 2 traces with 20 spans and 1 rejected input" in run("build", file, "--out", url).output


def test_build_names_what_it_cannot_open(tmp_path: Path) -> None:
    told = run("build", tmp_path / "nowhere", "--out", tmp_path / "corpus", code=1).output
    assert "nowhere" in told
    assert "Try: check the path" in told
    assert "--engine dask" in run("build", tmp_path, "--out", tmp_path, "--scheduler", "tcp://x", code=2).output


READ_BY = {
    "corpus.json": ("summary",),
    "_counts.parquet": ("summary",),
    "_records/*.json": ("sample", "--into"),
    "scores/*/*/*.parquet": ("sample", "--into"),
    "traces/*/*/*.parquet": ("sample", "--into"),
}
"""The command that reads each kind of file; a check writes the counts anew."""


@pytest.mark.parametrize("pattern", READ_BY)
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\x00" * 40])
def test_a_damaged_file_of_a_corpus_is_named_with_what_to_do(tmp_path: Path, pattern: str, content: bytes) -> None:
    url = tmp_path / "corpus"
    run("build", otlp_file(tmp_path / "a.jsonl", 1, 2), "--out", url, "--workers", 1)
    run("check", url, "--workers", 1)
    (file,) = url.glob(pattern)
    file.write_bytes(content)
    told = _told(tmp_path, url, pattern)
    assert "damaged" in told or "corpus of version" in told
    assert file.name in told or str(url) in told
    assert f"corpus check {url}" in told if pattern == "_counts.parquet" else "build it again" in told


@pytest.mark.parametrize("pattern", ["_records/*.json", "_counts.parquet", "scores/*/*/*.parquet"])
def test_one_changed_byte_of_a_corpus_is_damage_and_not_another_number(tmp_path: Path, pattern: str) -> None:
    url = tmp_path / "corpus"
    run("build", otlp_file(tmp_path / "a.jsonl", 1, 2), "--out", url, "--workers", 1)
    run("check", url, "--workers", 1)
    (file,) = url.glob(pattern)
    body = bytearray(file.read_bytes())
    body[body.index(b'"rows"') + 2 if pattern.endswith("json") else _in_first_column(file)] ^= 1
    file.write_bytes(body)
    assert f"{file} is damaged" in _told(tmp_path, url, pattern)
    file.unlink()
    if pattern.startswith("scores"):
        assert f"is gone: {file}. Try: delete the corpus" in _told(tmp_path, url, pattern)


def _told(tmp_path: Path, url: Path, pattern: str) -> str:
    """What the command says that reads files of this kind."""
    name, *into = READ_BY[pattern]
    return run(name, url, *into, *([tmp_path / "home"] if into else []), code=1).output


def _in_first_column(file: Path) -> int:
    """Where the last byte of a column that is always read stands."""
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    assert column.path_in_schema in {"trace_id", "facet"}
    return int((column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1)


def test_check_and_summary_name_what_they_count(tmp_path: Path) -> None:
    url = tmp_path / "corpus"
    run("build", SAMPLES / "trail", "--out", url, "--workers", 1)
    checked = answer("check", url, "--workers", 1)
    assert checked["traces"] > 0
    assert checked["findings"] == answer("summary", url)["totals"]["findings"]
    told = run("summary", url, "--by", "model").output
    assert f"{checked['traces']:,} judged" in told
    assert "traces_with_findings" in told
    assert "there is no corpus at" in run("check", tmp_path, code=1).output
    run("build", otlp_file(tmp_path / "late.jsonl", 1), "--out", url, "--workers", 1)
    assert f"Try: tracejury corpus check {url}" in run("summary", url, code=1).output


def test_a_corpus_of_another_version_names_the_command_that_builds_it_again(tmp_path: Path) -> None:
    url = tmp_path / "corpus"
    run("build", otlp_file(tmp_path / "a.jsonl", 1, 2), "--out", url, "--workers", 1)
    about = json.loads((url / "corpus.json").read_text(encoding="utf-8"))
    (url / "corpus.json").write_text(json.dumps({**about, "version": about["version"] - 1}), encoding="utf-8")
    for words in (("summary", url), ("check", url), ("build", tmp_path / "a.jsonl", "--out", url)):
        told = run(*words, code=1).output
        assert f"holds a corpus of version {about['version'] - 1}; this program reads {about['version']}" in told
        assert "build it again: tracejury corpus build SOURCE --out ANOTHER_URL" in told
