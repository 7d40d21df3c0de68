"""Rubrics: what each judge looks for, read from TOML files, and descriptions of agents from Markdown.

A rubric's version is the hash of its content. The shipped files stand in `judging/judges/rubrics` and
`judging/judges/agents`; a workspace adds its own in `rubrics/*.toml` and `agents/*.md` of its home.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from tracejury.ingest.trace import Trace
from tracejury.judging.records import Dimension, Impact

Answer = Literal["score", "errors"]
Text = Annotated[str, Field(min_length=1)]
M = TypeVar("M", bound=BaseModel)
VERSION_LENGTH = 16  # hex digits
_KEY = r"[A-Za-z][A-Za-z0-9_-]{0,31}"
_FRONT = re.compile(r"\A\+\+\+\n(.*?)\n\+\+\+\n(.*)\Z", re.DOTALL)
_TOOL_NAME = re.compile(r"[A-Za-z_]\w*")
_MANAGED_AGENT = re.compile(r"managed_agents\.\d+\.name$")


class RubricError(Exception):
    """A rubric or agent description that cannot be used; the message names file and place of every fault."""

    def __init__(self, message: str, faults: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults) or (message,)


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

    key: Annotated[str, Field(pattern=f"^{_KEY}$")]
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
        faults = _contradictions(self.model_dump(by_alias=True, exclude_none=True))
        if faults:
            raise PydanticCustomError("contradiction", "{faults}", {"faults": "; ".join(faults), "each": faults})
        return self

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


def _contradictions(content: Mapping[str, Any]) -> list[str]:
    """What does not fit together in the fields of a rubric, whether or not each is right by itself."""
    answer, not_applicable = content.get("answer", "score"), content.get("not_applicable")
    faults = []
    if answer == "score" and content.get("anchors") is None:
        faults.append("a rubric that asks for a score needs [anchors] with 3, middle and 0")
    if answer == "errors" and not content.get("categories"):
        faults.append("a rubric that asks for errors needs categories")
    if content.get("not_applicable_phrases") and not_applicable is None:
        faults.append("not_applicable_phrases need not_applicable, which says when they hold")
    examples = content.get("examples", ())
    replies = (
        [one.get("reply") for one in examples if isinstance(one, dict)] if isinstance(examples, list | tuple) else []
    )
    for number, reply in enumerate(replies, 1):
        if isinstance(reply, dict):
            of_example = _contradictions_of_example(reply, answer, not_applicable, content.get("categories") or ())
            faults += [f"example {number}: {fault}" for fault in of_example]
    return faults


def _contradictions_of_example(
    reply: Mapping[str, Any], answer: object, not_applicable: object, categories: Iterable[object]
) -> list[str]:
    faults = []
    answers = (reply.get("score") is not None) + (reply.get("not_applicable") is not None)
    if answers != (1 if answer == "score" else 0):
        faults.append("its reply needs a score or not_applicable where the rubric asks for a score, else neither")
    if reply.get("not_applicable") is not None and not_applicable is None:
        faults.append("it is not applicable, but the rubric does not say when that holds")
    named = [one.get("category") for one in reply.get("findings", ()) if isinstance(one, dict)]
    unknown = sorted({str(name) for name in named if name is not None and name not in [*categories]})
    if unknown:
        faults.append(f"it names categories that are not in the rubric: {', '.join(unknown)}")
    return faults


class Match(_Strict):
    """By what a trace is recognised: every list given must share an entry with the trace."""

    formats: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class AgentDescription(_Strict):
    """How an agent works (its control flow), told to a judge before the trace."""

    name: str
    title: Text
    text: Text
    match: Match = Match()

    @property
    def version(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:VERSION_LENGTH]

    def fits(self, trace: Trace) -> bool:
        """Whether the trace comes from this agent, by its format, the names of its agents, spans and tools."""
        match = self.match
        conditions = ((match.formats, _formats), (match.agents, _agents), (match.spans, _spans), (match.tools, _tools))
        if not any(names for names, _ in conditions):
            return False
        return all(not names or not names_of(trace).isdisjoint(names) for names, names_of in conditions)


def rubrics(home: Path | None = None) -> dict[str, Rubric]:
    """All rubrics that can be used, by key: the shipped ones, then those of the workspace."""
    return _read_rubrics(home)[0]


def _read_rubrics(home: Path | None) -> tuple[dict[str, Rubric], list[RubricError]]:
    known: dict[str, Rubric] = {}
    errors = []
    for name, data in [*_shipped("rubrics", ".toml"), *_own(home, "rubrics", ".toml")]:
        try:
            rubric = parse_rubric(data, name)
            if rubric.key in known:
                fault = f"key: {rubric.key!r} is taken by another rubric; choose another key"
                raise RubricError(f"{name}: {fault}", [fault])
            known[rubric.key] = rubric
        except RubricError as error:
            errors.append(error)
    return known, errors


def broken_files(home: Path | None) -> list[RubricError]:
    """Rubrics and agent descriptions of a workspace that are left out, each with its faults."""
    return [*_read_rubrics(home)[1], *_read_agents(home)[1]]


def choose_rubrics(names: str, known: Mapping[str, Rubric]) -> tuple[Rubric, ...]:
    """The rubrics of a flag like `LC,EE` or `all` (every scoring rubric); RubricError for an unknown name."""
    if names.strip().lower() == "all":
        return tuple(rubric for rubric in known.values() if rubric.answer == "score")
    by_fold = {key.lower(): rubric for key, rubric in known.items()}
    chosen: dict[str, Rubric] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        rubric = by_fold.get(name.lower())
        if rubric is None:
            raise RubricError(f"no rubric is called {name!r}. Try: {', '.join(known)} or all")
        chosen[rubric.key] = rubric
    if not chosen:
        raise RubricError(f"no dimension is named. Try: {', '.join(known)} or all")
    return tuple(chosen.values())


def parse_rubric(data: bytes, name: str) -> Rubric:
    """A rubric from the bytes of its TOML file; RubricError says what is wrong and where."""
    content = _toml(data, name)
    return _validated(Rubric, content, name, _contradictions(content))


def new_rubric(home: Path, key: str) -> Path:
    """Write a commented rubric to be filled in; returns its file. RubricError where that is there, or is no key."""
    path = home / "rubrics" / f"{key}.toml"
    if re.fullmatch(_KEY, key) is None:
        raise RubricError(f"{key!r} is not a valid rubric key. Try: up to 32 letters, digits, _ or -, a letter first")
    if key in rubrics(home):
        raise RubricError(f"the key {key!r} is taken by another rubric. Try: another name")
    text = resources.files("tracejury.judging.judges").joinpath("new_rubric.toml").read_text(encoding="utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("$key", key))
    except FileExistsError as error:
        raise RubricError(f"{path} is there already. Try: tracejury rubric check {path}") from error
    return path


def agent_descriptions(home: Path | None = None) -> dict[str, AgentDescription]:
    """All descriptions that can be used, by name; one of the workspace replaces a shipped one of the same name."""
    return _read_agents(home)[0]


def _read_agents(home: Path | None) -> tuple[dict[str, AgentDescription], list[RubricError]]:
    known: dict[str, AgentDescription] = {}
    errors = []
    for name, data in [*_shipped("agents", ".md"), *_own(home, "agents", ".md")]:
        try:
            agent = parse_agent(data, name)
            known[agent.name] = agent
        except RubricError as error:
            errors.append(error)
    return known, errors


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
        fault = f"not valid TOML: {error}"
        raise RubricError(f"{name}: {fault}", [fault]) from error


def _validated(model: type[M], content: dict[str, object], name: str, contradictions: Sequence[str] = ()) -> M:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        # pydantic looks for contradictions only where every field is right by itself
        faults = [_fault(one) for one in error.errors() if one["type"] != "contradiction"] + [*contradictions]
        raise RubricError(f"{name}: {'; '.join(faults)}", faults) from error


def _fault(error: ErrorDetails) -> str:
    place = ".".join(str(step) for step in error["loc"]) or "the file"
    if error["type"] == "string_too_short":
        return f"{place}: is empty. Try: write it"
    if error["type"] == "missing":
        return f"{place}: is missing. Try: write it"
    if error["type"] == "extra_forbidden":
        return f"{place}: not a field of a rubric. Try: correct its name, or delete it"
    return f"{place}: {error['msg']}"
