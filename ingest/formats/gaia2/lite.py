"""A lite file of ARE: the conversation of each agent and the verdict with its rationale, and no event."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tracejury.ingest.formats.fields import object_in
from tracejury.ingest.formats.gaia2.execution_outcome import Evidence
from tracejury.ingest.formats.gaia2.export import Export, empty_export
from tracejury.ingest.formats.gaia2.values import number, sequence, text, without_empty, word
from tracejury.ingest.parse import inner_json
from tracejury.ingest.trace import IngestError, Json

HISTORIES = "per_agent_interaction_histories"
USAGE = "per_agent_llm_usage_stats"
COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens", "completion_duration")

_ERROR = re.compile(r"Error: (?P<error>.*?)\nException: (?P<exception>.*)\nCategory: (?P<category>[^\n]*)", re.DOTALL)
_RETRY_HINT = "\n\nNow let's retry: take care not to repeat previous errors!"
# How ARE 1.2 wraps what it logged into messages (`DEFAULT_STEP_2_MESSAGE`).
_WRAPPERS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.DOTALL))
    for kind, pattern in (
        ("task", r"\[TASK\]: \n(.*?)\n?"),
        ("observation", r"\[OUTPUT OF STEP \d+\] Observation:\n\*\*\*\n(.*)\n\*\*\*\n?"),
        ("error", r"\[OUTPUT OF STEP \d+\] ERROR:\n\*\*\*\n(.*)\n\*\*\*\n?"),
        ("environment_notifications", r"Environment notifications updates:\n\*\*\*\n(.*)\n\*\*\*\n?"),
        ("agent_user_interface", r"User messages updates:\n\*\*\*\n(.*)\n\*\*\*\n?"),
        ("plan", r"\[PLAN\]:\n(.*?)\n?"),
        ("facts", r"\[FACTS LIST\]:\n(.*?)\n?"),
    )
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedMessage:
    """One message of a history: what it is (`kind` as in the agent's log) and what was logged (`body`)."""

    role: str | None
    content: str
    seconds: Json
    rest: Mapping[str, Json]
    kind: str
    body: str

    @property
    def second(self) -> float | None:
        return number(self.seconds)

    @property
    def error(self) -> str:
        """The class of the error, for messages that tell of one."""
        match = _ERROR.fullmatch(self.body)
        return match["error"] if match else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lite:
    """A lite file. `histories` in the file's order: the first agent is the main one."""

    raw: Mapping[str, Json]
    histories: Mapping[str, tuple[ParsedMessage, ...]]
    usage: Mapping[str, Mapping[str, Json]]

    @property
    def evidence(self) -> Evidence:
        return Evidence(
            source="lite",
            decision=word(self.raw.get("validation_decision")),
            rationale=text(self.raw.get("validation_rationale")),
            says_rationale="validation_rationale" in self.raw,
        )

    @property
    def attributes(self) -> dict[str, Json]:
        """What of the file is no row and no outcome, or of a wrong type. `run_duration` is simulated seconds."""
        covered = {HISTORIES, USAGE, "validation_rationale"}
        if word(self.raw.get("validation_decision")) is not None:
            covered.add("validation_decision")
        others = {key: value for key, value in self.raw.items() if key not in covered}
        return without_empty({**others, USAGE: _unread_usage(self.raw.get(USAGE))})

    def as_export(self) -> Export:
        """The little that a lite file tells of scenario and agent, in the shape of an export without events."""
        return replace(
            empty_export(None),
            definition=without_empty({"scenario_id": self.raw.get("scenario_id")}),
            simulation={"agent_id": self.raw.get("main_agent_type"), "model_id": self.raw.get("model_id")},
        )


def looks_like_lite(value: Json) -> bool:
    return isinstance(value, dict) and HISTORIES in value


def read_lite(value: Json) -> Lite:
    """The lite file in a parsed JSON object. Raises `IngestError` where a history is no list of messages."""
    raw = object_in(value)
    histories = raw.get(HISTORIES)
    if not isinstance(histories, dict):
        raise IngestError(
            f"{HISTORIES} should be an object", place=HISTORIES, remedy="export the execution again with ARE"
        )
    return Lite(
        raw=raw,
        histories={agent: _history(items, f"{HISTORIES}.{agent}") for agent, items in histories.items()},
        usage={agent: object_in(stats) for agent, stats in object_in(raw.get(USAGE)).items()},
    )


def refuse_empty(lite: Lite) -> None:
    """A lite file without conversation (an oracle execution) is no trace. Raises `IngestError` for it."""
    if not any(lite.histories.values()):
        raise IngestError(
            "the lite file holds no conversation (an oracle execution, or no agent ran)",
            place=HISTORIES,
            remedy="give the hf or gui file of the same execution",
        )


def usage_of(lite: Lite, agent: str, call: int) -> dict[str, Json]:
    """The counts of an agent's n-th model call; empty where the lists do not reach."""
    stats = lite.usage.get(agent, {})
    lists = {name: sequence(stats.get(name)) for name in COUNTS}
    return {name: values[call] for name, values in lists.items() if call < len(values)}


def _unread_usage(stats: Json) -> Json:
    """The counts that are no lists of numbers, by agent and name; None where all are."""
    if not isinstance(stats, dict):
        return stats
    unread: dict[str, Json] = {}
    for agent, counts in stats.items():
        if not isinstance(counts, dict):
            unread[agent] = counts
            continue
        for name in COUNTS:
            values = counts.get(name)
            if values is not None and not (isinstance(values, list) and all(map(_is_count, values))):
                unread[f"{agent}.{name}"] = values
    return unread or None


def _is_count(value: Json) -> bool:
    return value is None or number(value) is not None


def error_fields(body: str) -> dict[str, Json]:
    """An error message taken apart as the agent's log has it."""
    match = _ERROR.fullmatch(body)
    return {"error": "error", "exception": body} if match is None else dict(match.groupdict())


def action_of(output: str) -> tuple[str, str] | None:
    """The tool and the arguments (JSON text) that a model's answer asks for; None where it asks for none.

    ARE rewrites the JSON before it parses it (escaped quotes become apostrophes); here the text is parsed as
    it stands, and only if that fails as ARE does.
    """
    blob = _blob(output)
    action = inner_json(blob) or _as_are_parses(blob)
    if not isinstance(action, dict) or action.get("action") is None:
        name = re.search(r'"action"\s*:\s*"([^"\\]{1,200})"', blob)
        return (name.group(1), blob) if name else None
    arguments = action.get("action_input")
    return text(action["action"]) or "tool", text({} if arguments in (None, "") else arguments) or ""


def _blob(output: str) -> str:
    action = output.rpartition("Action:")[2].replace("```json", "").replace("```", "")
    return action[action.find("{") : action.rfind("}") + 1] if "{" in action else ""


def _as_are_parses(blob: str) -> Json:
    rewritten = re.sub(r'"""(.*?)"""', r"'\1'", blob.replace('\\"', "'"), flags=re.DOTALL)
    try:
        value: Json = json.loads(rewritten, strict=False)
    except (ValueError, RecursionError):
        return None
    return value


def _history(items: Json, place: str) -> tuple[ParsedMessage, ...]:
    if not isinstance(items, list):
        raise IngestError(
            f"{place} should be a list of messages", place=place, remedy="export the execution again with ARE"
        )
    return tuple(_said(item) for item in items)


def _said(item: Json) -> ParsedMessage:
    message = object_in(item)
    role, content = text(message.get("role")), text(message.get("content"))
    if not isinstance(item, dict):
        content = text(item)
    kind, body = unwrapped(role, content or "")
    return ParsedMessage(
        role=role,
        content=content or "",
        seconds=message.get("timestamp"),
        rest=without_empty({k: v for k, v in message.items() if k not in {"role", "content", "timestamp"}}),
        kind=kind,
        body=body,
    )


def unwrapped(role: str | None, content: str) -> tuple[str, str]:
    """What a message was before ARE wrapped it: its kind as in the agent's log, and the text logged."""
    if role in {"system", "assistant"}:
        return ("system_prompt" if role == "system" else "llm_output"), content.removesuffix("\n")
    bare = content.partition(_RETRY_HINT)[0] if "] ERROR:\n" in content[:60] else content
    for kind, pattern in _WRAPPERS:
        if match := pattern.fullmatch(bare):
            return kind, match.group(1)
    return ("observation" if role == "tool-response" else "message"), content
