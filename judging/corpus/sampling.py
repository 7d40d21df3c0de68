"""Traces of a corpus drawn for people, each with the probability with which it was drawn, put into a workspace."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Final, Literal, get_args

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, Engine, insert, select

from tracejury.ingest.batch import store
from tracejury.ingest.conventions.mapped import using
from tracejury.ingest.corpus.build import reading_settings
from tracejury.ingest.corpus.joining import units_by_number
from tracejury.ingest.corpus.layout import Corpus, Record, open_corpus
from tracejury.ingest.corpus.partition import HELD_BYTES, Reading
from tracejury.ingest.corpus.sources import Item, Unit, read_again
from tracejury.ingest.store import read_transaction, schema, write_transaction
from tracejury.ingest.trace import IngestError, LooseLogs, Rejected
from tracejury.judging.corpus.schemas import FINDINGS, SCORES
from tracejury.judging.queues.queue_store import QueueSpec, make_queue
from tracejury.judging.queues.queueing import draw
from tracejury.judging.store import tables
from tracejury.judging.store.locks import QUEUES

Method = Literal["random", "stratum", "disagreement"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
EVERY: Final = "all"
DISAGREE, AGREE = "checks and status disagree", "checks and status agree"
LEAST: Final = 2  # traces of a stratum: of one alone nobody knows how it varies


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """A sample in a workspace: its key and queue, traces drawn of how many, and traces drawn by stratum."""

    sample_key: int
    queue: str
    traces: int
    population: int
    strata: dict[str, int]


def population(corpus: Corpus) -> pd.DataFrame:
    """Give the traces of a checked corpus that can be drawn, those with a score: trace_id, source, agent (the first),
    has_findings, has_failed (by its outcome, else its status). Read partition by partition, in Arrow's memory.

    Raises `IngestError` where nothing was checked.
    """
    parts = [_drawable(corpus, record) for record in corpus.records()]
    table = pa.concat_tables(parts).unify_dictionaries() if parts else None
    if table is None or not table.num_rows:
        raise IngestError(
            f"{corpus.url} holds no trace that was checked", remedy=f"tracejury corpus check {corpus.url}"
        )
    frame: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    return frame


def _drawable(corpus: Corpus, record: Record) -> pa.Table:
    """The traces of a partition that have a score: a trace and its scores stand in one partition."""
    columns = ["trace_id", "source", "agents", "status", "outcome"]
    rows = pa.concat_tables(corpus.tables("traces", [record], columns=columns))
    rows = rows.filter(pc.is_in(rows["trace_id"], _ids(corpus, record, "scores", SCORES)))
    agents = [agents[0] if agents else "(none)" for agents in rows["agents"].to_pylist()]
    failed = list(map(_has_failed, rows["status"].to_pylist(), rows["outcome"].to_pylist()))
    return pa.table(
        {
            "trace_id": rows["trace_id"],
            "source": rows["source"].cast(pa.string()).dictionary_encode(),
            "agent": pa.array(agents, pa.string()).dictionary_encode(),
            "has_findings": pc.is_in(rows["trace_id"], _ids(corpus, record, "findings", FINDINGS)),
            "has_failed": pa.array(failed, pa.bool_()),
        }
    )


def _ids(corpus: Corpus, record: Record, table: str, schema: pa.Schema) -> pa.Array:
    every = corpus.tables(table, [record], columns=["trace_id"], schema=schema)
    return pa.concat_tables(every)["trace_id"].unique()


def _with_places(corpus: Corpus, drawn: pd.DataFrame) -> pd.DataFrame:
    """Drawn traces with their digest and the units of their partition that they are read from."""
    sources = set(drawn["source"])
    records = [record for record in corpus.records() if record.id in sources]
    is_drawn = pc.field("trace_id").isin(pa.array(drawn["trace_id"], pa.string()))
    tables = corpus.tables("traces", records, columns=["trace_id", "digest", "units"], condition=is_drawn)
    return drawn.merge(pa.concat_tables(tables).to_pandas(), on="trace_id", how="left", validate="one_to_one")


def _has_failed(status: str, outcome: str | None) -> bool:
    score = orjson.loads(outcome)["score"] if outcome else None
    return status == "ERROR" if score is None else score == 0


def draw_sample(traces: pd.DataFrame, n: int, method: Method, *, seed: int) -> pd.DataFrame:
    """Draw `n` rows of `population` without replacement: those rows with `stratum` and `inclusion` (0 to 1].

    `random` draws from all alike; `stratum` from each agent with and without findings, in proportion and at least two;
    `disagreement` one half from traces whose checks and status disagree. Within a stratum all have the same chance
    n_h / N_h. The same seed draws the same traces. Raises `ValueError` where `n` is too small for the strata.
    """
    strata = _strata(traces, method)
    sizes = {str(name): int(size) for name, size in strata.value_counts(sort=False).items()}
    counts = _allocation(sizes, min(n, len(traces)), is_even=method == "disagreement")
    draws = (draw(seed, "corpus", trace_id) for trace_id in traces["trace_id"])
    ranks = pd.Series(np.fromiter(draws, np.uint64, count=len(traces)), index=traces.index)
    order = ranks.groupby(strata).rank(method="first")
    is_drawn = order <= strata.map(counts)
    inclusion = strata.map({name: counts[name] / sizes[name] for name in sizes})
    return traces.assign(stratum=strata, inclusion=inclusion)[is_drawn].reset_index(drop=True)


def _strata(traces: pd.DataFrame, method: Method) -> pd.Series:
    if method == "random":
        return pd.Series(EVERY, index=traces.index)
    if method == "disagreement":
        return (traces["has_findings"] != traces["has_failed"]).map({True: DISAGREE, False: AGREE})
    return traces["agent"].astype("str") + traces["has_findings"].map(
        {True: ", with findings", False: ", without findings"}
    )


def _allocation(sizes: Mapping[str, int], n: int, *, is_even: bool) -> dict[str, int]:
    """How many of each stratum: `LEAST` each, the rest in proportion to what is left (or evenly), by largest remainder.

    Raises `ValueError` where they are more than `n`.
    """
    counts = {name: min(size, LEAST) for name, size in sizes.items()}
    if sum(counts.values()) > n:
        raise ValueError(f"{n} traces are too few for {len(sizes)} strata. Try: --n {sum(counts.values())} or more")
    while (left := n - sum(counts.values())) > 0:
        room = {name: size - counts[name] for name, size in sizes.items() if size > counts[name]}
        weights = dict.fromkeys(room, 1) if is_even else room
        shares = {name: left * weight / sum(weights.values()) for name, weight in weights.items()}
        for name, share in shares.items():
            counts[name] += min(room[name], floor(share))
        if all(share < 1 for share in shares.values()):
            for name in sorted(shares, key=lambda one: (-shares[one], one))[:left]:
                counts[name] += 1
    return counts


def sample(
    engine: Engine,
    url: str,
    *,
    n: int,
    method: Method,
    author: str,
    seed: int = 1,
    reading: Reading | None = None,
) -> Sampled:
    """Draw traces of a corpus into the workspace and make a queue of them; the sample is stored when all are there.

    They are read again from the corpus' sources, whose bytes must be the same. Raises `IngestError` where they are not,
    where a trace cannot be stored, or where there is no whole corpus; `ValueError` where `n` is too small.
    """
    corpus = open_corpus(url)
    corpus.require_whole()
    options = _reading(corpus, reading)
    traces = population(corpus)
    drawn = _with_places(corpus, draw_sample(traces, n, method, seed=seed))
    with using(options.maps):
        report = store(engine, _items(corpus, drawn, options), redact=options.redact)
    _require_stored(engine, drawn, report.rejected)
    now = time.time_ns() // 1000
    with write_transaction(engine, QUEUES) as connection:
        key = _keep(connection, url, method, seed, len(traces), author, drawn, now)
        name = f"corpus sample {key}"
        make_queue(connection, QueueSpec(name=name, author=author, seed=seed), list(drawn["trace_id"]), now=now)
    counts = {str(name): int(count) for name, count in drawn["stratum"].value_counts().items()}
    return Sampled(sample_key=key, queue=name, traces=len(drawn), population=len(traces), strata=counts)


def _reading(corpus: Corpus, or_this: Reading | None) -> Reading:
    """How the corpus was read. Raises `IngestError` where it was read with other maps than those given."""
    settings = corpus.settings()
    form = settings["format"]
    reading = replace(
        or_this or Reading(), format=form if isinstance(form, str) else None, redact=bool(settings["redact"])
    )
    if reading_settings(reading) != settings:
        raise IngestError(f"{corpus.url} was built with other maps", remedy="give the same --map files")
    return reading


def _items(corpus: Corpus, drawn: pd.DataFrame, reading: Reading) -> Iterator[Item]:
    """The drawn traces out of their files, a unit of files read once for all of them."""
    records = {record.id: record for record in corpus.records()}
    ids_by_units: dict[tuple[Unit, ...], set[str]] = defaultdict(set)
    for source, rows in drawn.groupby("source", observed=True):
        units = units_by_number(corpus, records[str(source)])
        for trace_id, numbers in zip(rows["trace_id"], rows["units"], strict=True):
            ids_by_units[tuple(units[number] for number in numbers)].add(trace_id)
    for some, ids in ids_by_units.items():
        for unit in some:
            for item in read_again(unit, format=reading.format, most_bytes=HELD_BYTES):
                yield from _only(item, ids)


def _only(item: Item, ids: set[str]) -> Iterator[Item]:
    if isinstance(item, LooseLogs):
        requests = tuple(request for request in item.requests if request[0] in ids)
        if requests:
            yield replace(item, requests=requests)
    elif not isinstance(item, Rejected) and item.trace_id in ids:
        yield item


def _require_stored(engine: Engine, drawn: pd.DataFrame, refused: Sequence[Rejected]) -> None:
    with read_transaction(engine) as connection:
        query = select(schema.trace.c.trace_id, schema.trace.c.digest)
        there = {row.trace_id: row.digest for row in connection.execute(query)}
    for trace_id, digest in zip(drawn["trace_id"], drawn["digest"], strict=True):
        if there.get(trace_id) != digest:
            why = refused[0].reason if refused else "its files now have other content"
            raise IngestError(
                f"trace {trace_id} is not in the workspace as the corpus holds it: {why}; no sample was stored",
                remedy="sample into a new workspace, or build the corpus again",
            )


def _keep(
    connection: Connection, url: str, method: Method, seed: int, size: int, author: str, drawn: pd.DataFrame, now: int
) -> int:
    row = {
        "url": url, "method": method, "seed": seed, "population": size, "author": author, "created_at": now,
    }  # fmt: skip
    key = connection.execute(insert(tables.corpus_sample).values(row)).inserted_primary_key
    assert key is not None
    columns = ("trace_id", "digest", "stratum", "inclusion")
    rows = [
        {"sample_key": key[0], **dict(zip(columns, values, strict=True))}
        for values in zip(*(drawn[name] for name in columns), strict=True)
    ]
    connection.execute(insert(tables.corpus_sample_trace), rows)
    return int(key[0])
