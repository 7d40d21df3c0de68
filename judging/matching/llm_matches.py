"""Proposals of a language model in the store: asked once for each person and judged cell, every call accounted for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import orjson
from sqlalchemy import Connection, Engine, select

from tracejury.ingest.store import read_transaction, write_transaction
from tracejury.judging.judges.limits import StopRunError
from tracejury.judging.matching.candidates import by_person, candidates_of, complete_errors, judged_cells
from tracejury.judging.matching.compared import newest_label, record_matching
from tracejury.judging.matching.llm_matching import LlmMatcher, Proposed, build_match_prompt, propose_by_model
from tracejury.judging.matching.match_store import store_proposals
from tracejury.judging.matching.rule import BY_MODEL, Candidate
from tracejury.judging.records import Call, ErrorLabel, Failure
from tracejury.judging.store import tables
from tracejury.judging.store.audit import record
from tracejury.judging.store.locks import MATCHES
from tracejury.judging.store.spans import parents_of

PROPOSED_BY_MODEL = "matches proposed by a model"
"""`what` of the audit row of every answered question; its detail holds the prompt's hash, tokens and cost."""
WITHDRAWN = "proposals of a model withdrawn"


@dataclass(kw_only=True)
class LlmSummary:
    """What came of asking. `cost_usd` counts the calls whose cost is known; `unknown_cost` the others."""

    author: str
    questions: int = 0
    asked_before: int = 0
    answered: int = 0
    matches: int = 0
    new: int = 0
    withdrawn: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unknown_cost: int = 0
    stopped: str | None = None
    is_out_of_budget: bool = False
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Question:
    """One person's errors and one judge's findings on one trace."""

    cell_key: int
    rubric: str
    errors: tuple[ErrorLabel, ...]
    findings: tuple[Candidate, ...]
    parents: Mapping[str, str | None]
    last_label: int

    @property
    def subject(self) -> str:
        return f"cell {self.cell_key}, {self.errors[0].annotator}"

    @property
    def prompt_hash(self) -> str:
        return build_match_prompt(self.errors, self.findings, parents=self.parents).hash


def propose_with_model(
    engine: Engine,
    matcher: LlmMatcher,
    *,
    judge_model: str | None = None,
    concurrency: int = 8,
    budget_usd: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LlmSummary:
    """Ask the model about every person and judged cell (of `judge` or of all) with errors and findings.

    What this model was asked before, in the same words about the same texts, is not asked again. A failure leaves what
    stood there as it was and is asked again next time. No call is begun once `budget_usd` is spent, or once a call
    was made whose cost nobody knows.
    """
    return asyncio.run(_Asking(engine, matcher, concurrency, budget_usd, progress).all(judge_model))


def withdraw_proposals(engine: Engine, model: str) -> int:
    """Withdraw every standing proposal of a model, in whatever version of the prompt; returns how many."""
    with write_transaction(engine, MATCHES) as connection:
        counts = store_proposals(connection, [], author=f"{BY_MODEL}{model}@", is_prefix=True)
        record(connection, who="command", what=WITHDRAWN, subject=model, detail=dict(counts))
    return counts["withdrawn"]


class _Asking:
    def __init__(
        self,
        engine: Engine,
        matcher: LlmMatcher,
        concurrency: int,
        budget_usd: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.engine, self.matcher, self.budget_usd = engine, matcher, budget_usd
        self.progress = progress or (lambda _done, _of: None)
        self.places = asyncio.Semaphore(concurrency)
        self.summary = LlmSummary(author=matcher.author)
        self.done = 0

    async def all(self, judge_model: str | None) -> LlmSummary:
        last_label = newest_label(self.engine)
        with read_transaction(self.engine) as connection:
            before = _asked(connection, self.matcher.author)
            questions = list(_questions(connection, judge_model, last_label))
        todo = [question for question in questions if before.get(question.subject) != question.prompt_hash]
        self.summary.questions, self.summary.asked_before = len(questions), len(questions) - len(todo)
        await asyncio.gather(*(self._one(question, len(todo)) for question in todo))
        return self.summary

    async def _one(self, question: _Question, of: int) -> None:
        async with self.places:
            if self._must_stop():
                return
            try:
                outcome = await propose_by_model(
                    self.matcher, question.errors, question.findings, rubric=question.rubric, parents=question.parents
                )
            except StopRunError as stop:
                self.summary.stopped = self.summary.stopped or str(stop)
                return
            self._count(outcome.call)
            if isinstance(outcome, Failure):
                self.summary.failures.append(outcome)
            else:
                self._keep(question, outcome)
            self.done += 1
            self.progress(self.done, of)

    def _must_stop(self) -> bool:
        if self.summary.stopped is None and self.budget_usd is not None:
            if self.summary.cost_usd >= self.budget_usd:
                self.summary.stopped = f"the budget of ${self.budget_usd:g} is spent"
                self.summary.is_out_of_budget = True
            elif self.summary.unknown_cost:
                self.summary.stopped = (
                    f"the cost of a call is unknown, so the budget of ${self.budget_usd:g} cannot be enforced"
                )
                self.summary.is_out_of_budget = True
        return self.summary.stopped is not None

    def _count(self, call: Call) -> None:
        self.summary.prompt_tokens += call.prompt_tokens or 0
        self.summary.completion_tokens += call.completion_tokens or 0
        self.summary.cost_usd += call.cost_usd or 0.0
        self.summary.unknown_cost += call.cost_usd is None

    def _keep(self, question: _Question, outcome: Proposed) -> None:
        """Store the proposals in the place of what this model proposed for the same person and cell before."""
        with write_transaction(self.engine, MATCHES) as connection:
            counts = store_proposals(
                connection,
                outcome.matches,
                author=f"{BY_MODEL}{self.matcher.model}@",
                is_prefix=True,
                finding_keys=[candidate.finding_id for candidate in question.findings],
                label_ids=[error.label_id for error in question.errors],
            )
            annotators, author = {question.errors[0].annotator}, self.matcher.author
            record_matching(connection, [question.cell_key], annotators, question.last_label, matcher=author)
            record(
                connection,
                who=self.matcher.author,
                what=PROPOSED_BY_MODEL,
                subject=question.subject,
                detail={
                    "prompt_hash": outcome.call.prompt_hash,
                    "matches": len(outcome.matches),
                    "prompt_tokens": outcome.call.prompt_tokens,
                    "completion_tokens": outcome.call.completion_tokens,
                    "cost_usd": outcome.call.cost_usd,
                    "raw_reply": outcome.call.repair_reply or outcome.call.raw_reply,
                },
            )
        self.summary.answered += 1
        self.summary.matches += len(outcome.matches)
        self.summary.new += counts["new"]
        self.summary.withdrawn += counts["withdrawn"]


def _questions(connection: Connection, judge_model: str | None, last_label: int) -> Iterator[_Question]:
    for trace_id, errors in complete_errors(connection).items():
        cells, people = judged_cells(connection, trace_id, judge_model), by_person(errors)
        candidates = candidates_of(connection, cells)
        parents = parents_of(connection, trace_id) if candidates else {}
        for cell in cells:
            for own in people:
                if candidates.get(cell.cell_key):
                    yield _Question(
                        cell_key=cell.cell_key, rubric=cell.rubric, errors=own,
                        findings=tuple(candidates[cell.cell_key]), parents=parents, last_label=last_label,
                    )  # fmt: skip


def _asked(connection: Connection, author: str) -> dict[str, str]:
    """By subject, the prompt that was last answered, unless the model's proposals were withdrawn since.

    Two cells may ask the same in the same words: each has findings of its own, which want pairs of their own.
    """
    table = tables.audit
    answered = (table.c.who == author) & (table.c.what == PROPOSED_BY_MODEL)
    withdrawn = (table.c.what == WITHDRAWN) & (table.c.subject == _model_of(author))
    rows = connection.execute(
        select(table.c.what, table.c.subject, table.c.detail).where(answered | withdrawn).order_by(table.c.row_key)
    ).all()
    last: dict[str, str] = {}
    for row in rows:
        if row.what == PROPOSED_BY_MODEL:
            last[row.subject] = str(orjson.loads(row.detail)["prompt_hash"])
        else:
            last.clear()
    return last


def _model_of(author: str) -> str:
    return author.removeprefix(BY_MODEL).rpartition("@")[0]
