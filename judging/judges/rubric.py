"""Rubrics: what each judge looks for, read from TOML files, and descriptions of agent systems from Markdown.

A rubric's version is the hash of its content. The shipped files stand in `judging/judges/rubrics` and
`judging/judges/agents`; a workspace adds its own in `rubrics/*.toml` and `agents/*.md` of its home.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tracejury.ingest.trace import Trace
from tracejury.judging.records import Dimension, Impact

Answer = Literal["score", "errors"]
Text = Annotated[str, Field(min_length=1)]
M = TypeVar("M", bound=BaseModel)
VERSION_LENGTH = 16  # hex digits
_FRONT = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n(.*)\Z", re.DOTALL)
_TOOL_NAME = re.compile(r"[A-Za-z_]\w*")
_MANAGED_AGENT = re.compile(r"managed_agents\.\d+\.name$")


class RubricError(Exception):
    """A rubric or agent description that cannot be used; the message names file, place and remedy."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)


class Anchors(_Strict):
    """What a score of 3, of the middle (1 and 2) and of 0 means."""

    full: Text = Field(alias="3")
    middle: Text
    none: Text = Field(alias="0")


class ExampleFinding(_Strict):
    description: Text
    evidence: str
    citations: tuple[str, ...]
    impact: Impact | None = None
    category: str | None = None


class ExampleReply(_Strict):
    """A right answer to an example: a score, or the reason why the rubric does not apply."""

    criteria: str
    rationale: Text
    findings: tuple[ExampleFinding, ...] = ()
    score: Annotated[int, Field(ge=0, le=3, strict=True)] | None = None
    not_applicable: Text | None = None


class Example(_Strict):
    trace: Text
    reply: ExampleReply


class Rubric(_Strict):
    """One judge. `answer` is `score` (0 to 3, with findings) or `errors` (findings with a category, no score)."""

    key: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,31}$")]
    title: Text
    answer: Answer = "score"
    dimension: Dimension | None = None
    judges: Text
    annotator: Text
    leaves: Mapping[str, Text] = Field(default_factory=dict)
    anchors: Anchors | None = None
    plan: Text | None = None
    not_applicable: Text | None = None
    not_applicable_phrases: tuple[Text, ...] = ()
    categories: tuple[Text, ...] = ()
    category_guide: Text | None = None
    examples: Annotated[tuple[Example, ...], Field(max_length=4)] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Rubric:
        if self.answer == "score" and self.anchors is None:
            raise ValueError("a rubric that asks for a score needs [anchors] with 3, middle and 0")
        if self.answer == "errors" and not self.categories:
            raise ValueError("a rubric that asks for errors needs categories")
        if self.not_applicable_phrases and self.not_applicable is None:
            raise ValueError("not_applicable_phrases need not_applicable, which says when they hold")
        for example in self.examples:
            self._check_example(example.reply)
        return self

    def _check_example(self, reply: ExampleReply) -> None:
        answers = (reply.score is not None) + (reply.not_applicable is not None)
        if answers != (1 if self.answer == "score" else 0):
            raise ValueError("an example's reply needs a score or not_applicable where the rubric asks for a score")
        if reply.not_applicable is not None and self.not_applicable is None:
            raise ValueError("an example is not applicable, but the rubric does not say when that holds")
        unknown = {f.category for f in reply.findings if f.category is not None} - set(self.categories)
        if unknown:
            raise ValueError(f"an example names categories that are not in the rubric: {sorted(unknown)}")

    @property
    def version(self) -> str:
        """Hash of the content: the same words give the same version wherever the file stands."""
        content = orjson.dumps(self.model_dump(mode="json", by_alias=True), option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(content).hexdigest()[:VERSION_LENGTH]


FIELD_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "key": "short name that `--dimensions` takes; letters, digits, - and _",
        "title": "the name in words",
        "answer": "`score` (0 to 3, with findings) or `errors` (findings with a category, no score)",
        "dimension": "which of LC, EE, PQ, PA, GF, TS, TC the rubric judges; empty: a dimension of its own",
        "judges": "what the judge looks at",
        "annotator": "the same in words for annotators",
        "leaves": "what is left to other dimensions, by their key",
        "anchors": "what a 3, a middle score and a 0 look like; needed where a score is asked for",
        "plan": "how to find the plan, where plans are judged",
        "not_applicable": "when there is nothing to score",
        "not_applicable_phrases": "sentences by which a judge says so",
        "categories": "error categories to choose from; needed where errors are asked for",
        "category_guide": "how to choose among them",
        "examples": "one to four worked examples: a piece of a trace and the right reply",
    }
)


class Match(_Strict):
    """By what a trace is recognised: every list given must share an entry with the trace."""

    formats: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class AgentDescription(_Strict):
    """How an agent system works (its control flow), told to a judge before the trace."""

    name: str
    title: Text
    text: Text
    match: Match = Match()

    @property
    def version(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:VERSION_LENGTH]

    def fits(self, trace: Trace) -> bool:
        """Whether the trace comes from this system, by its format, the names of its agents, spans and tools."""
        match = self.match
        wanted = ((match.formats, _formats), (match.agents, _agents), (match.spans, _spans), (match.tools, _tools))
        if not any(names for names, _ in wanted):
            return False
        return all(not names or not found(trace).isdisjoint(names) for names, found in wanted)


def rubrics(home: Path | None = None) -> dict[str, Rubric]:
    """All rubrics by key: the shipped ones, then those of the workspace.

    Raises RubricError for a file that is not valid, and for a key that stands twice.
    """
    found: dict[str, Rubric] = {}
    for name, data in [*_shipped("rubrics", ".toml"), *_own(home, "rubrics", ".toml")]:
        rubric = parse_rubric(data, name)
        if rubric.key in found:
            raise RubricError(f"{name}: the key {rubric.key!r} is taken by another rubric; choose another key")
        found[rubric.key] = rubric
    return found


def choose_rubrics(names: str, known: Mapping[str, Rubric]) -> tuple[Rubric, ...]:
    """The rubrics of a flag like `LC,EE` or `all` (every scoring rubric); RubricError for an unknown name."""
    if names.strip().lower() == "all":
        return tuple(rubric for rubric in known.values() if rubric.answer == "score")
    by_fold = {key.lower(): rubric for key, rubric in known.items()}
    chosen: dict[str, Rubric] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        rubric = by_fold.get(name.lower())
        if rubric is None:
            raise RubricError(f"no judge is called {name!r}; there are {', '.join(known)} and 'all'")
        chosen[rubric.key] = rubric
    if not chosen:
        raise RubricError(f"no judge named; there are {', '.join(known)} and 'all'")
    return tuple(chosen.values())


def parse_rubric(data: bytes, name: str) -> Rubric:
    """A rubric from the bytes of its TOML file; RubricError says what is wrong and where."""
    return _validated(Rubric, _toml(data, name), name)


def agent_descriptions(home: Path | None = None) -> dict[str, AgentDescription]:
    """All descriptions by name; one of the workspace replaces a shipped one of the same name."""
    files = [*_shipped("agents", ".md"), *_own(home, "agents", ".md")]
    described = (parse_agent(data, name) for name, data in files)
    return {description.name: description for description in described}


def parse_agent(data: bytes, name: str) -> AgentDescription:
    """A description from its Markdown file: TOML between two `+++` lines (title, match), then the text."""
    parts = _FRONT.match(_text(data, name).replace("\r\n", "\n"))
    if parts is None:
        raise RubricError(f"{name}: begin with a title and how a trace is recognised, between two lines '+++'")
    front = _toml(parts[1].encode(), name)
    return _validated(AgentDescription, {**front, "name": Path(name).stem, "text": parts[2]}, name)


def agent_for(trace: Trace, known: Mapping[str, AgentDescription]) -> AgentDescription | None:
    """The description that fits the trace: None where none does, or more than one (better silent than wrong)."""
    fitting = [description for description in known.values() if description.fits(trace)]
    return fitting[0] if len(fitting) == 1 else None


def _formats(trace: Trace) -> set[str]:
    return {trace.format}


def _spans(trace: Trace) -> set[str]:
    return {span.name for span in trace.spans}


def _tools(trace: Trace) -> set[str]:
    """Tools that ran, and those that an agent's span lists by name."""
    tools = {span.tool_name for span in trace.spans if span.tool_name is not None}
    for span in trace.spans:
        tools.update(_TOOL_NAME.findall(str(span.attributes.get("smolagents.tools_names") or "")))
    return tools


def _agents(trace: Trace) -> set[str]:
    agents = {span.agent for span in trace.spans if span.agent is not None}
    for span in trace.spans:
        agents.update(str(value) for key, value in span.attributes.items() if _MANAGED_AGENT.search(key))
    return agents


def _shipped(folder: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(resources.files("tracejury.judging.judges").joinpath(folder).iterdir(), key=lambda e: e.name):
        if entry.name.endswith(suffix):
            yield entry.name, entry.read_bytes()


def _own(home: Path | None, folder: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    if home is None:
        return
    for path in sorted((home / folder).glob(f"*{suffix}")):
        yield str(path), path.read_bytes()


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RubricError(f"{name}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error


def _toml(data: bytes, name: str) -> dict[str, object]:
    try:
        return tomllib.loads(_text(data, name))
    except tomllib.TOMLDecodeError as error:
        raise RubricError(f"{name}: not valid TOML: {error}") from error


def _validated(model: type[M], content: dict[str, object], name: str) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"]) or "the file"
        raise RubricError(f"{name}: {place}: {first['msg']}") from error
