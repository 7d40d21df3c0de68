"""The offline checks on every trace of a corpus: what `judge --model checks` would store of the same traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from tracejury.ingest.corpus.engine import Workers
from tracejury.ingest.corpus.layout import Corpus, Record, open_corpus
from tracejury.ingest.corpus.reading import parts_of, traces_of
from tracejury.ingest.gaps import NOTHING_TO_READ
from tracejury.ingest.trace import Span, Trace
from tracejury.judging.checks import checks_version
from tracejury.judging.corpus.counting import COUNTS_VERSION, add_all, counted
from tracejury.judging.corpus.schemas import FINDINGS, SCHEMAS, SCORES
from tracejury.judging.records import DIMENSIONS, FAILED_STATES, Failure, Finding, Verdict
from tracejury.judging.runs.offline import verdicts_of

Progress = Callable[[int, int], None]
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a check did: partitions judged now and before, traces judged, findings, and cells that failed."""

    partitions: int
    known_partitions: int
    traces: int
    findings: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class CheckJob:
    """A partition to be judged; where these checks have judged it, only to be counted."""

    url: str
    record: Record


def check(url: str, *, workers: Workers | None = None, progress: Progress | None = None) -> Checked:
    """Judge every trace of the corpus offline into `findings` and `scores`, and count it (`counting`).

    Partitions judged by these checks stay. Traces that leave nothing to judge are left out as `judge` leaves them out.
    Cut off and started again, it goes on. Raises `IngestError` where there is no whole corpus.
    """
    corpus = open_corpus(url)
    corpus.require_whole()
    with corpus.held_for("check"):
        records = corpus.records()
        jobs = [CheckJob(url=url, record=record) for record in records if not _is_done(record)]
        known = sum(record.checked == checks_version() for record in records)
        rows = []
        for counts in (workers or Workers()).each(check_partition, jobs):
            rows.append(counts)
            if progress is not None:
                progress(len(rows), len(jobs))
        corpus.remove_unnamed(SCHEMAS)
        add_all(corpus)
    traces, findings, failed = (sum(counts[place] for counts in rows) for place in range(3))
    return Checked(
        partitions=len(records) - known, known_partitions=known, traces=traces, findings=findings, failed=failed
    )


def _is_done(record: Record) -> bool:
    return record.checked == checks_version() and record.counted == COUNTS_VERSION


def check_partition(job: CheckJob) -> tuple[int, int, int]:
    """Judge the traces of a partition, count it and commit it: traces, findings, failed cells that are new."""
    corpus, record, counts = open_corpus(job.url), job.record, (0, 0, 0)
    if record.checked != checks_version():
        record, counts = _judge_partition(corpus, record)
    corpus.commit(counted(corpus, record))
    return counts


def _judge_partition(corpus: Corpus, record: Record) -> tuple[Record, tuple[int, int, int]]:
    version = checks_version()
    files: dict[str, list[str]] = {"findings": [], "scores": []}
    counts = (0, 0, 0)
    for part in parts_of(record):
        tables, some = _judged(traces_of(corpus, part))
        counts = (counts[0] + some[0], counts[1] + some[1], counts[2] + some[2])
        for name, table in tables.items():
            if table.num_rows:
                files[name].append(_file(part.files["traces"][0], name, version))
                corpus.write_table(files[name][-1], table)
    rows = {**record.rows, "findings": counts[1]}
    return replace(record, files={**record.files, **files}, rows=rows, checked=version), counts


def _file(traces_file: str, table: str, version: str) -> str:
    """Beside the part's traces, named by the version: what another version of the checks wrote is not overwritten."""
    return f"{table}/{traces_file.partition('/')[2].removesuffix('.parquet')}-{version}.parquet"


def _judged(traces: Iterable[Trace]) -> tuple[dict[str, pa.Table], tuple[int, int, int]]:
    findings: list[Row] = []
    scores: list[Row] = []
    count = 0
    for trace in filter(is_judged, traces):
        count += 1
        for outcome in verdicts_of(trace, DIMENSIONS):
            scores.append(_score_row(outcome))
            findings += _finding_rows(trace, outcome)
    failed = sum(row["state"] in FAILED_STATES for row in scores)
    tables = {"findings": _table(findings, FINDINGS), "scores": _table(scores, SCORES)}
    return tables, (count, len(findings), failed)


def is_judged(trace: Trace) -> bool:
    """Whether `judge` would judge the trace: a step of it is recorded, and something of it can be read."""
    codes = {warning.partition(":")[0] for warning in trace.warnings}
    return NOTHING_TO_READ not in codes and not (len(trace.spans) == 1 and "no_trace" in codes)


def _table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=schema)


def _score_row(outcome: Verdict | Failure) -> Row:
    score, rationale = (outcome.score, outcome.rationale) if isinstance(outcome, Verdict) else (None, None)
    return {
        "trace_id": outcome.trace_id,
        "dimension": outcome.rubric,
        "state": outcome.state,
        "score": score,
        "rationale": rationale,
        "reason": outcome.reason,
    }


def _finding_rows(trace: Trace, outcome: Verdict | Failure) -> Iterator[Row]:
    if isinstance(outcome, Failure):
        return
    spans = {span.span_id: span for span in trace.spans}
    for position, finding in enumerate(outcome.findings):
        yield {
            "trace_id": trace.trace_id,
            "dimension": outcome.rubric,
            "position": position,
            "check_name": finding.check,
            "citations": [asdict(citation) for citation in finding.citations],
            **{name: getattr(finding, name) for name in FINDINGS.names[4:10]},
            **_place(trace, finding, spans),
        }


def _place(trace: Trace, finding: Finding, spans: dict[str, Span]) -> Row:
    """Agent, model and tool of the first span that the finding cites."""
    cited = next((spans[c.span_id] for c in finding.citations if c.span_id in spans), None)
    if cited is None:
        return {"agent": None, "model": None, "tool": None}
    return {"agent": cited.agent, "model": cited.model, "tool": cited.tool_name or _called(trace, cited)}


def _called(trace: Trace, span: Span) -> str | None:
    """The first tool that the span's answer calls."""
    calls = (call for position in span.output_messages for call in trace.messages[position].tool_calls)
    return next((call.name for call in calls if call.name), None)
