"""Cells of one trace and one model, judged from the same reading of the trace, which fits the model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracejury.ingest.trace import Trace
from tracejury.judging.judges.evidence import Finder
from tracejury.judging.judges.judge import Judge, Limit, judge_spans, judge_trace
from tracejury.judging.judges.model import Model, ModelRequest
from tracejury.judging.judges.prompt import Prompts, build_prompt
from tracejury.judging.judges.rubric import AgentDescription, Rubric, agent_for
from tracejury.judging.judges.trace_text import TraceText, render_trace
from tracejury.judging.records import Failure, Verdict
from tracejury.judging.runs.model_setup import ModelSetup
from tracejury.judging.runs.run_spec import RunSpec
from tracejury.judging.runs.run_store import Cell

ANSWER_TOKENS = 4_000  # kept for an answer where max_tokens is not set: for context, pace and (at least) budget


class Tokens:
    """What texts and requests of a run take; a text is counted once."""

    def __init__(self, spec: RunSpec) -> None:
        wished = spec.parameters.get("max_tokens") or spec.parameters.get("max_completion_tokens")
        self.answer = int(wished) if isinstance(wished, int) else ANSWER_TOKENS
        self._is_paced = spec.tpm is not None
        self._counts: dict[tuple[int, bytes], int] = {}

    def count(self, setup: ModelSetup, text: str) -> int:
        key = (id(setup), hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).digest())
        if key not in self._counts:
            self._counts[key] = setup.count(text)
        return self._counts[key]

    def of_request(self, setup: ModelSetup, request: ModelRequest) -> int:
        if not self._is_paced and setup.prices is None:
            return 0  # nobody asks
        texts = [request.prompt.system, request.prompt.prefix, request.prompt.suffix]
        return sum(self.count(setup, text) for text in [*texts, *(turn.text for turn in request.turns)])

    def limit(self, setup: ModelSetup) -> Limit | None:
        if setup.context is None:
            return None
        return Limit(context=setup.context, count=lambda text: self.count(setup, text), answer=self.answer)


@dataclass(kw_only=True)
class Group:
    """Cells of one trace and one model: they share a prefix. The first one goes ahead, the others follow."""

    setup: ModelSetup
    finder: Finder
    prompts: Prompts
    agent: AgentDescription | None
    shares: bool
    waiting: list[Cell]

    async def judge_trace(
        self, judge: Judge, model: Model, *, limit: Limit | None = None, share_prefix: bool = False
    ) -> Verdict | Failure:
        return await judge_trace(
            judge, self.finder.reading, model, agent=self.agent, capabilities=self.setup.capabilities, limit=limit,
            share_prefix=share_prefix, finder=self.finder, prompts=self.prompts,
        )  # fmt: skip

    async def judge_spans(self, judge: Judge, model: Model, *, limit: Limit | None) -> Verdict | Failure:
        return await judge_spans(
            judge, self.finder.reading, model, agent=self.agent, capabilities=self.setup.capabilities, limit=limit,
            finder=self.finder, prompts=self.prompts,
        )  # fmt: skip


class Groups:
    """Makes the groups of a run, and the judges of their cells."""

    def __init__(
        self,
        spec: RunSpec,
        tokens: Tokens,
        *,
        rubrics: Mapping[str, Rubric],
        models: Mapping[str, ModelSetup],
        agents: Mapping[str, AgentDescription],
    ) -> None:
        self._spec, self._tokens = spec, tokens
        self._rubrics, self._models, self._agents = rubrics, models, agents
        self._judges: dict[tuple[str, str], Judge] = {}

    def sharing(self, cells: Sequence[Cell]) -> list[list[Cell]]:
        """Cells by prefix: all of them, or in the paper's order (rubric first) those of one judge."""
        if self._spec.order == "cache":
            return [list(cells)]
        by_rubric: dict[str, list[Cell]] = {}
        for cell in cells:
            by_rubric.setdefault(cell.rubric, []).append(cell)
        return list(by_rubric.values())

    def make(self, trace: Trace, cells: list[Cell]) -> Group:
        """These cells of the trace, which is read to fit their model; on the store's thread."""
        setup = self._models[cells[0].model]
        finder = Finder(self._reading(trace, setup))
        _ = finder.notes  # computed here, once for all judgements of the trace
        return Group(
            setup=setup,
            finder=finder,
            prompts=Prompts(finder.reading.text),
            agent=self._agent(trace),
            shares=len(cells) > 1,
            waiting=cells,
        )

    def _agent(self, trace: Trace) -> AgentDescription | None:
        if self._spec.agent == "auto":
            return agent_for(trace, self._agents)
        return None if self._spec.agent == "none" else self._agents[self._spec.agent]

    def _reading(self, trace: Trace, setup: ModelSetup) -> TraceText:
        """The whole text where it fits the model beside the longest rubric, else one cut to fit."""
        reading = render_trace(trace, reasoning=self._spec.reasoning)
        if setup.context is None:
            return reading
        forms = setup.capabilities.forms
        prompts = [build_prompt("", self._rubrics[key], form=form) for key in self._spec.rubrics for form in forms]
        beside = max(self._tokens.count(setup, str(prompt)) for prompt in prompts)
        room = setup.context - self._tokens.answer - beside - 2_000  # an agent description, a repair
        tokens = setup.count(reading.text)
        if tokens <= room:
            return reading
        budget = int(len(reading.text) * max(room, 0) / tokens * 0.97)
        return render_trace(trace, budget=budget, reasoning=self._spec.reasoning)

    def judge_of(self, cell: Cell) -> Judge:
        key = (cell.rubric, cell.model)
        if key not in self._judges:
            self._judges[key] = Judge(
                rubric=self._rubrics[cell.rubric],
                model=cell.model,
                parameters=self._spec.parameters,
                order=self._spec.order,
                repairs=self._spec.repairs and not self._spec.batch,
            )
        return self._judges[key]
