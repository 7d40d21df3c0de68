"""One entry of ARE's `world_logs`: a JSON text with a type, a time, an agent and fields taken one by one."""

from __future__ import annotations

from tracejury.ingest.formats.gaia2.values import text, without_empty, word
from tracejury.ingest.parse import inner_json
from tracejury.ingest.times import from_seconds
from tracejury.ingest.trace import Json


class Entry:
    """A log entry. Fields are taken as they find their place in a row; `left` is what nobody took."""

    def __init__(self, number: int, raw: Json) -> None:
        self.number = number
        value = inner_json(raw) if isinstance(raw, str) else raw
        self.fields: dict[str, Json] = dict(value) if isinstance(value, dict) else {"unreadable": raw}
        self.warnings: list[str] = []
        self.kind = word(self.take("log_type")) or ""
        self.seconds = self.take("timestamp")
        self.time = from_seconds(self.seconds)
        self.id = word(self.take("id")) or f"log-{number}"
        self.agent_id = word(self.take("agent_id")) or "unknown"
        if "unreadable" in self.fields:
            self.warnings.append(f"unreadable_log: world_logs[{number}] is not a JSON object; kept as text")
        elif self.time is None:
            self.warnings.append(f"no_timestamp: world_logs[{number}] has no usable time: {str(self.seconds)[:80]!r}")

    def take(self, field: str) -> Json:
        return self.fields.pop(field, None)

    def take_text(self, field: str) -> str | None:
        return text(self.take(field))

    @property
    def left(self) -> dict[str, Json]:
        return without_empty(self.fields)

    @property
    def stamp(self) -> list[Json]:
        """How a row remembers an entry that is not its first: type, id, exact seconds."""
        return [self.kind, self.id, self.seconds]
