"""Pairs of an error and a finding, drawn for people to label, and what the rule reaches on the labelled ones."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import orjson
import pandas as pd
from sqlalchemy import Connection

from tracejury.ingest.spreadsheet import csv_of_rows
from tracejury.ingest.trace import Rejected
from tracejury.judging.agreement.match_rates import ANSWERS, RuleRates, rule_rates
from tracejury.judging.matching.candidates import by_person, candidates_of, complete_errors, judged_cells
from tracejury.judging.matching.rule import Candidate, SpanTree, TextLikeness, propose, signs_of
from tracejury.judging.queues.queueing import draw
from tracejury.judging.records import ErrorLabel
from tracejury.judging.store.judge_models import version_names
from tracejury.judging.store.spans import ordinals_of, parents_of

SHOWN: Final = (
    "pair", "trace_id", "annotator", "judge_model", "dimension", "error", "error_category", "error_spans",
    "error_evidence", "finding", "finding_category", "finding_spans", "finding_evidence", "same_error",
)  # fmt: skip
"""Columns of the file that people label: nothing of what the rule proposes."""
KEY: Final = ("pair", "trace_id", "cell_key", "label_id", "finding_id", "stratum", "inclusion", "digest")
"""Columns of its key: how each pair was drawn."""
NUMBERS: Final = {"pair": int, "cell_key": int, "finding_id": int, "inclusion": float}


def population(
    connection: Connection, *, judge_model: str | None = None, trace_ids: Collection[str] = ()
) -> pd.DataFrame:
    """Every pair of an error and a finding of the same trace, person and judged cell (of a judge model; of traces).

    Columns: those of `SHOWN` but `pair` and `same_error`; cell_key, label_id, finding_id; proposed, whether this
    version of the rule proposes the pair; stratum, its place (same, neighbouring or other span) and whether proposed;
    digest, of what the rule and a reader see of it.
    """
    likeness, names = TextLikeness(), version_names(connection)
    rows: list[dict[str, Any]] = []
    for trace_id, errors in complete_errors(connection).items():
        if trace_ids and trace_id not in trace_ids:
            continue
        cells = judged_cells(connection, trace_id, judge_model)
        candidates, parents = candidates_of(connection, cells), parents_of(connection, trace_id)
        ordinals = ordinals_of(connection, trace_id) if candidates else {}
        for cell in cells:
            judge = names[cell.judge_version]
            about = {"cell_key": cell.cell_key, "judge_model": judge.judge_model, "dimension": judge.dimension}
            for own in by_person(errors):
                pairs = _pairs(own, candidates.get(cell.cell_key, ()), parents, likeness, ordinals)
                rows += [{**about, **row} for row in pairs]
    columns = [*SHOWN[1:-1], *KEY[2:6], "digest", "proposed"]
    return pd.DataFrame(rows, columns=columns)


def _pairs(
    errors: Sequence[ErrorLabel],
    findings: Sequence[Candidate],
    parents: Mapping[str, str | None],
    likeness: TextLikeness,
    ordinals: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    tree = SpanTree(parents)
    proposed = {
        (match.label_id, match.finding_id) for match in propose(errors, findings, parents=parents, likeness=likeness)
    }
    for error in errors:
        for candidate in findings:
            shown = {**_shown_error(error, ordinals), **_shown_finding(candidate, ordinals)}
            is_proposed = (error.label_id, candidate.finding_id) in proposed
            place = _place(error, candidate, tree)
            yield {
                **shown,
                "label_id": error.label_id,
                "finding_id": candidate.finding_id,
                "proposed": is_proposed,
                "stratum": f"{place}, {'' if is_proposed else 'not '}proposed",
                "digest": blake2b(orjson.dumps(shown), digest_size=8).hexdigest(),
            }


def _place(error: ErrorLabel, candidate: Candidate, tree: SpanTree) -> str:
    signs = signs_of(error, candidate.finding, 0.0, tree)
    return "same span" if signs.same_span else "neighbouring span" if signs.family else "other span"


def _shown_error(error: ErrorLabel, ordinals: Mapping[str, str]) -> dict[str, str]:
    return {
        "trace_id": error.trace_id,
        "annotator": error.annotator,
        "error": error.description,
        "error_category": error.category or "",
        "error_spans": " ".join(ordinals.get(span_id, span_id) for span_id in error.span_ids),
        "error_evidence": "\n".join(piece.quote for piece in error.evidence),
    }


def _shown_finding(candidate: Candidate, ordinals: Mapping[str, str]) -> dict[str, str]:
    cited = (citation.span_id or citation.cite for citation in candidate.finding.citations)
    return {
        "finding": candidate.finding.description,
        "finding_category": candidate.finding.category or "",
        "finding_spans": " ".join(ordinals.get(cite, cite) for cite in cited),
        "finding_evidence": candidate.finding.evidence,
    }


def draw_pairs(pairs: pd.DataFrame, n: int, *, seed: int) -> pd.DataFrame:
    """Draw `n` rows of `population` (all, where there are fewer) without replacement, in an order that tells nothing.

    Each stratum gives the same number, or all of it. Within a stratum all have the same chance, in the column
    `inclusion`; `pair` numbers the rows from 1. The same seed draws the same pairs.
    """
    sizes = {str(name): int(size) for name, size in pairs["stratum"].value_counts().items()}
    counts = _even(sizes, n)
    names = zip(pairs["label_id"], pairs["finding_id"], strict=True)
    ranks = pd.Series([draw(seed, "pairs", label, str(finding)) for label, finding in names], index=pairs.index)
    drawn = ranks.groupby(pairs["stratum"]).rank(method="first") <= pairs["stratum"].map(counts)
    inclusion = pairs["stratum"].map({name: counts[name] / size for name, size in sizes.items()})
    chosen = pairs.assign(inclusion=inclusion)[drawn]
    shuffled = chosen.loc[ranks[drawn].sort_values().index].reset_index(drop=True)
    return shuffled.assign(pair=shuffled.index + 1, same_error="")


def _even(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many of each stratum: as even as their sizes allow, `n` together or all."""
    counts: Counter[str] = Counter()
    for _ in range(min(n, sum(sizes.values()))):
        open_to_more = [name for name, size in sizes.items() if counts[name] < size]
        counts[min(open_to_more, key=lambda name: (counts[name], name))] += 1
    return {name: counts[name] for name in sizes}


def write_pairs(drawn: pd.DataFrame, out: Path) -> Path:
    """Write the file to label (JSON lines where `out` ends in .jsonl, else CSV) and beside it its key; return the key.

    Raises `FileExistsError` where one of them is there: it may hold labels.
    """
    key = key_of(out)
    there = next((path for path in (out, key) if path.exists()), None)
    if there is not None:
        raise FileExistsError(f"{there} exists already and may hold labels. Try: another --out")
    key.write_text(csv_of_rows(KEY, _records(drawn, KEY)), encoding="utf-8", newline="")
    rows = _records(drawn, SHOWN)
    if out.suffix == ".jsonl":
        out.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    else:
        out.write_text(csv_of_rows(SHOWN, rows), encoding="utf-8", newline="")
    return key


def _records(rows: pd.DataFrame, columns: Sequence[str]) -> list[dict[str, Any]]:
    values = zip(*(rows[name].tolist() for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def key_of(pairs: Path) -> Path:
    """Where the key of a file of pairs stands."""
    return pairs.with_name(f"{pairs.stem}.key.csv")


@dataclass(frozen=True, kw_only=True)
class Score:
    """What the rule reaches on labelled pairs, how many wait for a label, and the rows that could not be taken."""

    rates: RuleRates
    labelled: int
    unlabelled: int
    rejected: tuple[Rejected, ...]


def score_pairs(connection: Connection, pairs: Path) -> Score:
    """Measure this version of the rule on a labelled file and its key, against the workspace they were drawn from.

    Raises `FileNotFoundError` where the key is not beside it, `ValueError` where it lacks a column or a number.
    """
    key = _read_key(key_of(pairs))
    today = population(connection, trace_ids=set(key["trace_id"]))
    answers, rejected = _answers(pairs, key, dict(zip(_names(today), today["digest"], strict=True)))
    labelled = key[key["pair"].isin(answers)].assign(same_error=lambda rows: rows["pair"].map(answers))
    proposed = set(_names(today[today["proposed"]]))
    rows = labelled.assign(proposed=[name in proposed for name in _names(labelled)])
    sizes = Counter(zip(today["cell_key"].tolist(), today["label_id"].tolist(), strict=True))
    return Score(
        rates=rule_rates(rows, sizes),
        labelled=len(rows),
        unlabelled=len(key) - len(rows),
        rejected=tuple(rejected),
    )


def _names(rows: pd.DataFrame) -> list[tuple[str, int]]:
    return list(zip(rows["label_id"], rows["finding_id"], strict=True))


def _read_key(path: Path) -> pd.DataFrame:
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: it says how the pairs were drawn. Try: keep it beside the pairs")
    key = pd.read_csv(path, dtype=str, keep_default_na=False)
    lacking = [name for name in KEY if name not in key.columns]
    if lacking:
        raise ValueError(f"{path} lacks the column {lacking[0]}. Try: the key that `match sample` wrote, unchanged")
    try:
        key = key.astype(NUMBERS)
    except ValueError as error:
        raise ValueError(f"{path}: {error}. Try: the key that `match sample` wrote, unchanged") from error
    if not key["inclusion"].between(0, 1, inclusive="right").all():
        raise ValueError(f"{path} holds an inclusion outside 0 to 1. Try: the key that `match sample` wrote, unchanged")
    return key


def _answers(
    path: Path, key: pd.DataFrame, digests: Mapping[tuple[str, int], str]
) -> tuple[dict[int, str], list[Rejected]]:
    """The answer of each labelled pair, and the rows that cannot be taken."""
    known = dict(zip(key["pair"], zip(_names(key), key["digest"], strict=True), strict=True))
    answers: dict[int, str] = {}
    rejected: list[Rejected] = []
    for line, row in _lines(path):
        answer = str(row.get("same_error") or "").strip().lower()
        pair = str(row.get("pair", "")).strip()
        number = int(pair) if pair.isdecimal() else 0
        if not answer:
            continue
        why = _why_not(number, answer, known, digests, answers)
        if why is None:
            answers[number] = answer
        else:
            reason, remedy = why
            rejected.append(Rejected(file=str(path), place=f"line {line}", reason=reason, remedy=remedy))
    return answers, rejected


def _why_not(
    pair: int,
    answer: str,
    known: Mapping[int, tuple[tuple[str, int], str]],
    digests: Mapping[tuple[str, int], str],
    answers: Mapping[int, str],
) -> tuple[str, str] | None:
    """Why a row cannot be taken, with a remedy; None where it can."""
    if pair not in known:
        return "its pair is not in the key", "keep the column pair as it was written"
    if answer not in ANSWERS:
        return f"same_error is {answer!r}", f"write {', '.join(ANSWERS)} or leave it empty"
    if pair in answers:
        return f"pair {pair} is already in an earlier line", "keep one of the two"
    name, digest = known[pair]
    if name not in digests:
        return f"pair {pair} is not in this workspace", "name the workspace that the pairs were drawn from"
    if digests[name] != digest:
        return f"the error or the finding of pair {pair} was changed since it was drawn", "draw again"
    return None


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each row of a file of pairs with its line (of CSV the line on which it begins)."""
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".jsonl":
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield number, _object(line)
        return
    reader = csv.DictReader(io.StringIO(text, newline=""))
    begins = reader.line_num + 1
    for row in reader:
        yield max(begins, 2), row
        begins = reader.line_num + 1


def _object(line: str) -> Mapping[str, Any]:
    """The object of a line of JSON; without a pair, so that it is rejected by its line, where it is none."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = None
    return row if isinstance(row, dict) else {"pair": "", "same_error": "no JSON object"}
