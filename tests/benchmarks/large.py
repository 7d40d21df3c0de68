"""A synthetic workspace of the size that the pages are measured at: traces, people's work, judges' answers, matches.

Seeded; traces go through the store's own packing and writing, opinions straight into the store's tables (bulk).
The proportions are those of a real study: one person has read everything, others a part, each trace by one or
more; some judgements fail, some do not apply; most proposals are open, some are decided.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Table, func, insert, select

from tests.benchmarks.corpus import text
from tracejury.ingest.messages import MessageTable
from tracejury.ingest.store import pack, write, write_transaction
from tracejury.ingest.texts import compress
from tracejury.ingest.trace import Source, SpanDraft, ToolCall, Trace
from tracejury.ingest.tree import assemble
from tracejury.judging.matching.compared import record_matching
from tracejury.judging.matching.rule import AUTO, RULE
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.records import DIMENSIONS, IMPACTS
from tracejury.judging.runs.verdicts import JudgeVersion, add_run, ensure_judge_version, set_run_status
from tracejury.judging.store import Workspace, open_workspace, tables
from tracejury.judging.store.people import ensure_annotator
from tracejury.judging.store.spans import AT_ONCE

Row = dict[str, Any]
T0 = 1_767_225_600_000_000  # microseconds: the first of January 2026
FAILURES = ("unparsable", "refused", "too_long", "error")
TOOLS = ("search", "open_page", "python", "calculator", "calendar", "mail", "files", "final_answer")


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much there is. The defaults are the stated target: 200,000 spans, 20,000 errors, 70,000 cells and more."""

    traces: int = 2_000
    spans: int = 100
    repeats: int = 5
    errors: float = 5.0
    """Mean errors that a person labels on a trace."""
    readers: tuple[tuple[str, float], ...] = (("ada", 1.0), ("ben", 0.4), ("cleo", 0.4), ("dan", 0.2))
    """Each person and the share of traces they have read."""
    judged: float = 1.0
    """Share of the traces that the first model judged, `repeats` times each."""
    second: float = 0.2
    """Share of the traces that a second model judged, once."""


MILLION = Size(traces=10_000, judged=0.2, second=0.04)
"""1,000,000 spans, 100,000 errors that people labelled, 7 dimensions x 5 repeats x 2,000 verdicts."""


def build(home: Path, size: Size | None = None, *, seed: int = 1) -> Workspace:
    """A workspace of that size in `home`."""
    size = size or Size()
    rng = random.Random(seed)
    workspace = open_workspace(home)
    ids = _traces(workspace, size, rng)
    with write_transaction(workspace.engine) as connection:
        labels = _people(connection, ids, size, rng)
        _judges(connection, ids, labels, size, rng)
        _matched(connection, labels)
    with write_transaction(workspace.engine) as connection:
        make_queue(connection, QueueSpec(name="all", author="root", k=2, overlap_share=0.2), list(ids), now=T0)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("ANALYZE")
    return workspace


# traces ---------------------------------------------------------------------------------------------------------


def _traces(workspace: Workspace, size: Size, rng: random.Random) -> dict[str, tuple[str, list[str]]]:
    """Write the traces; gives the digest and the span ids of each."""
    found: dict[str, tuple[str, list[str]]] = {}
    with write_transaction(workspace.engine) as connection:
        for number in range(size.traces):
            packed = pack(made_up_trace(number, size.spans, rng))
            write(connection, packed)
            found[packed.trace_id] = packed.digest, [row["span_id"] for row in packed.spans]
    return found


def made_up_trace(number: int, spans: int, rng: random.Random) -> Trace:
    """A run of an agent of so many spans: calls of a model, each followed by a tool's."""
    table = MessageTable()
    trace_id = f"{rng.getrandbits(128):032x}"
    history = [
        table.add("system", text(random.Random(number % 3), 300)),
        table.add("user", text(rng, 40)),
    ]
    root, clock = f"{rng.getrandbits(64):016x}", T0 + number * 60_000_000
    agent = f"agent-{number % 5}"
    drafts = [SpanDraft(span_id=root, name=f"run {agent}", kind="AGENT", agent=agent, start_time=clock, status="OK")]
    while len(drafts) < spans:
        step = len(drafts)
        said = table.add("assistant", text(rng, 30), (ToolCall(rng.choice(TOOLS), '{"q": "x"}', f"call_{step}"),))
        drafts.append(_span(rng, root, clock, step, "LLM", agent, history, [said]))
        history = [*history, said]
        if len(drafts) < spans:
            drafts.append(_span(rng, root, clock, step + 1, "TOOL", agent, (), ()))
    return assemble(
        drafts,
        trace_id=trace_id,
        format=("trail", "otlp", "gaia2")[number % 3],
        source=Source(file=f"{trace_id}.json", data=trace_id.encode()),
        messages=table,
        goal=text(rng, 20),
        final_answer=text(rng, 8),
    )


def _span(
    rng: random.Random, root: str, clock: int, step: int, kind: str, agent: str, said: Iterable[int], new: Iterable[int]
) -> SpanDraft:
    tool = rng.choice(TOOLS) if kind == "TOOL" else None
    return SpanDraft(
        span_id=f"{rng.getrandbits(64):016x}",
        parent_span_id=root,
        name=tool or "call",
        kind="TOOL" if tool else "LLM",
        agent=agent,
        tool_name=tool,
        model=None if tool else "made-up",
        start_time=clock + step * 1_000_000,
        end_time=clock + step * 1_000_000 + rng.randrange(1, 900_000),
        status="ERROR" if rng.random() < 0.06 else "OK",
        input=text(rng, 12) if tool else None,
        output=text(rng, 40) if tool else None,
        prompt_tokens=None if tool else 40 * step,
        completion_tokens=None if tool else 60,
        total_tokens=None if tool else 40 * step + 60,
        input_messages=list(said),
        output_messages=list(new),
    )


# people ---------------------------------------------------------------------------------------------------------


def _people(
    connection: Connection, ids: dict[str, tuple[str, list[str]]], size: Size, rng: random.Random
) -> dict[str, list[Row]]:
    """Reviews, scores and error labels; gives the error labels by trace."""
    for name, _ in size.readers:
        ensure_annotator(connection, name)
    errors: list[Row] = []
    scores: list[Row] = []
    reviews: list[Row] = []
    for trace_id, (digest, spans) in ids.items():
        truth = {dimension: rng.choices((0, 1, 2, 3), (10, 20, 30, 40))[0] for dimension in DIMENSIONS}
        for number, (name, share) in enumerate(size.readers):
            if number and rng.random() >= share:
                continue
            common = {"trace_id": trace_id, "trace_digest": digest, "annotator": name, "occasion": 0,
                      "guideline_version": None, "op_id": None, "created_at": T0}  # fmt: skip
            made = [_error(rng, common, spans) for _ in range(_poisson(rng, size.errors))]
            errors += made
            scores += [_score(rng, common, dimension, truth[dimension]) for dimension in DIMENSIONS]
            reviews.append(
                {**common, "status": "submitted", "no_error": not made, "reason": "", "revealed": False,
                 "active_ms": rng.randrange(60_000, 900_000), "item_key": None}
            )  # fmt: skip
    _insert(connection, tables.error_label, errors)
    _insert(connection, tables.score_label, scores)
    _insert(connection, tables.review, reviews)
    by_trace: dict[str, list[Row]] = defaultdict(list)
    for row in errors:
        by_trace[row["trace_id"]].append(row)
    return by_trace


def _error(rng: random.Random, common: Row, spans: list[str]) -> Row:
    named = rng.sample(spans, rng.choice((1, 1, 1, 2)))
    quote = [{"quote": text(rng, 6), "span_id": named[0], "field": None, "start": None, "end": None}]
    return {
        **common,
        "label_id": f"{rng.getrandbits(64):016x}",
        "span_ids": orjson.dumps(named).decode(),
        "dimensions": orjson.dumps(rng.sample(DIMENSIONS, rng.choice((1, 1, 2)))).decode(),
        "impact": rng.choices(IMPACTS, (30, 45, 25))[0],
        "category": None,
        "description": text(rng, 14),
        "evidence": orjson.dumps(quote).decode(),
        "phase": "blind",
        "attributes": "{}",
        "deleted": False,
        "author": common["annotator"],
    }


def _score(rng: random.Random, common: Row, dimension: str, truth: int) -> Row:
    is_out = dimension in {"PQ", "PA"} and rng.random() < 0.1
    return {
        **common,
        "dimension": dimension,
        "value": None if is_out else _near(rng, truth, 0.75),
        "not_applicable": is_out,
        "note": "",
        "confidence": rng.choice((1, 2, 3, None)),
        "phase": "blind",
        "author": common["annotator"],
    }


# judges ---------------------------------------------------------------------------------------------------------


def _judges(
    connection: Connection,
    ids: dict[str, tuple[str, list[str]]],
    labels: dict[str, list[Row]],
    size: Size,
    rng: random.Random,
) -> None:
    suites = (
        ("judge-large", list(ids)[: int(len(ids) * size.judged)], size.repeats),
        ("judge-small", list(ids)[: int(len(ids) * size.second)], 1),
    )
    counters = {"cell": 0, "finding": 0}
    for model, judged, repeats in suites:
        versions = {
            dimension: ensure_judge_version(
                connection, JudgeVersion(rubric=dimension, model=model, rubric_version="1", mode="trace")
            )
            for dimension in DIMENSIONS
        }
        spec = {"judges": list(DIMENSIONS), "models": [model], "repeats": repeats}
        run = add_run(connection, name=f"{model}, {repeats} runs", spec=spec, author="root")
        made = _Answers(rng, counters)
        for trace_id in judged:
            digest, spans = ids[trace_id]
            for dimension in DIMENSIONS:
                base = rng.choices((0, 1, 2, 3), (10, 20, 30, 40))[0]
                for repeat in range(repeats):
                    common = {"run_key": run, "judge_version": versions[dimension], "rubric": dimension,
                              "trace_id": trace_id, "trace_digest": digest, "repeat": repeat}  # fmt: skip
                    made.add(common, model, base, spans, labels.get(trace_id, []))
        made.store(connection)
        set_run_status(connection, run, "done")


def _matched(connection: Connection, labels: dict[str, list[Row]]) -> None:
    """The errors of each person were compared with the findings on the same trace, whether a match came of it or not.

    Traces of the same people at once.
    """
    cells, newest = tables.cell.c, connection.scalar(select(func.max(tables.error_label.c.row_key))) or 0
    by_people: dict[frozenset[str], list[int]] = defaultdict(list)
    for key, trace_id in connection.execute(select(cells.cell_key, cells.trace_id).where(cells.state == "scored")):
        by_people[frozenset(row["annotator"] for row in labels.get(trace_id, ()))].append(key)
    for people, keys in by_people.items():
        for start in range(0, len(keys), AT_ONCE):
            record_matching(connection, keys[start : start + AT_ONCE], people, newest, matcher=RULE)


class _Answers:
    """The rows of cells with their findings, citations and matches."""

    def __init__(self, rng: random.Random, counters: dict[str, int]) -> None:
        self.rng, self.counters = rng, counters
        self.cells: list[Row] = []
        self.findings: list[Row] = []
        self.citations: list[Row] = []
        self.matches: list[Row] = []
        self.reviews: list[Row] = []
        self.body = compress(b'{"score": 2, "rationale": "..."}', level=3)

    def add(self, common: Row, model: str, base: int, spans: list[str], errors: list[Row]) -> None:
        rng = self.rng
        self.counters["cell"] += 1
        key, dice = self.counters["cell"], rng.random()
        state = rng.choice(FAILURES) if dice < 0.03 else "not_applicable" if dice < 0.08 else "scored"
        score = _near(rng, base, 0.8) if state == "scored" else None
        words = text(rng, 25) if state == "scored" else None
        self.cells.append(
            {**common, "cell_key": key, "state": state, "score": score, "criteria": words, "rationale": words,
             "reason": None if state == "scored" else "no plan" if state == "not_applicable" else "no JSON",
             "notes": "[]", "model": model, "parameters": "{}", "prompt_hash": "x", "raw_reply": self.body,
             "finish_reason": "stop", "prompt_tokens": 20_000, "completion_tokens": 400, "cached_tokens": 0,
             "cost_usd": 0.01, "latency_s": rng.uniform(1, 9), "attempts": 1, "finished_at": T0 + key}
        )  # fmt: skip
        if score is not None:
            self._find(key, common, score, spans, errors)

    def _find(self, cell: int, common: Row, score: int, spans: list[str], errors: list[Row]) -> None:
        rng = self.rng
        ours = [error for error in errors if f'"{common["rubric"]}"' in error["dimensions"]]
        people = list(dict.fromkeys(error["annotator"] for error in ours))
        left = {name: [error for error in ours if error["annotator"] == name] for name in people}
        for position in range(_poisson(rng, (3 - score) * 0.9)):
            self.counters["finding"] += 1
            key = self.counters["finding"]
            hit = rng.choice(ours) if ours and rng.random() < 0.6 else None
            cited = orjson.loads(hit["span_ids"]) if hit is not None and rng.random() < 0.7 else [rng.choice(spans)]
            self.findings.append(
                {"finding_key": key, "cell_key": cell, "position": position, "description": text(rng, 14),
                 "evidence": text(rng, 6), "dimension": None, "impact": rng.choice(IMPACTS), "category": None,
                 "check_name": None, "evidence_place": "verbatim", "evidence_span_id": cited[0]}
            )  # fmt: skip
            is_made_up = rng.random() < 0.03
            self.citations += [
                {"finding_key": key, "position": n, "cite": span, "span_id": None if is_made_up else span}
                for n, span in enumerate(cited)
            ]
            if hit is not None and hit in left[hit["annotator"]]:
                left[hit["annotator"]].remove(hit)
                self._match(key, hit, cited, common["repeat"])
            elif hit is None and rng.random() < 0.1:
                self.reviews.append({"finding_key": key, "review": rng.choice(("valid new error", "false alarm")),
                                     "author": "ada", "label_id": None, "created_at": T0})  # fmt: skip

    def _match(self, finding: int, error: Row, cited: list[str], repeat: int) -> None:
        rng = self.rng
        row = {"label_id": error["label_id"], "finding_key": finding, "status": "proposed", "author": AUTO,
               "confidence": round(rng.uniform(0.5, 1), 3), "reasons": '["same dimension", "shared span"]',
               "localized": bool(set(cited) & set(orjson.loads(error["span_ids"]))), "withdrawn": False,
               "created_at": T0}  # fmt: skip
        self.matches.append(row)
        if repeat == 0 and rng.random() < 0.3:
            status = "confirmed" if rng.random() < 0.85 else "rejected"
            self.matches.append({**row, "status": status, "author": "ada", "confidence": 1.0,
                                 "reasons": '["decided by a person"]', "created_at": T0 + 1})  # fmt: skip

    def store(self, connection: Connection) -> None:
        _insert(connection, tables.cell, self.cells)
        _insert(connection, tables.finding, self.findings)
        _insert(connection, tables.citation, self.citations)
        _insert(connection, tables.match, self.matches)
        _insert(connection, tables.finding_review, self.reviews)


def _near(rng: random.Random, truth: int, sure: float) -> int:
    return truth if rng.random() < sure else min(3, max(0, truth + rng.choice((-1, 1, -1, 1, -2, 2))))


def _poisson(rng: random.Random, mean: float) -> int:
    count, at = 0, rng.expovariate(1.0)
    while at < mean:
        count += 1
        at += rng.expovariate(1.0)
    return count


def _insert(connection: Connection, table: Table, rows: list[Row]) -> None:
    for some in _chunks(rows, 10_000):
        connection.execute(insert(table), some)


def _chunks(rows: list[Row], size: int) -> Iterator[list[Row]]:
    return (rows[at : at + size] for at in range(0, len(rows), size))


def main(home: str) -> None:
    """`python -m tests.benchmarks.large HOME`: build one to look at."""
    started, cpu = time.perf_counter(), time.process_time()
    build(Path(home))
    print(f"built in {time.perf_counter() - started:.0f} s ({time.process_time() - cpu:.0f} s of CPU)")


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
