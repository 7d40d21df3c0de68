"""The forms of an annotator's operations, as the browser sends them. Each is a full state, so undo is one more put."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from tracejury.ingest.parse import clean_text
from tracejury.judging.records import Dimension, Impact, Phase

MAX_TEXT = 100_000  # characters of a description, note or quote


class OpError(Exception):
    """An operation that cannot be applied; nothing of its batch was. `remedy` says what the sender can do."""

    def __init__(self, reason: str, *, remedy: str, op_id: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.op_id = reason, remedy, op_id


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _readable(value: Any) -> Any:
    """NUL and lone surrogates, which no database takes, as readable escapes."""
    return clean_text(value) if isinstance(value, str) else value


Text = Annotated[str, Field(max_length=MAX_TEXT), BeforeValidator(_readable)]
Id = Annotated[str, Field(min_length=1, max_length=200)]


class EvidenceForm(_Form):
    """Code points `start` to `end` of a field of a span, with the quote and its surroundings."""

    quote: Text
    span_id: Id | None = None
    field: Id | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)
    before: Annotated[str, Field(max_length=2000), BeforeValidator(_readable)] = ""
    after: Annotated[str, Field(max_length=2000), BeforeValidator(_readable)] = ""


class ErrorPut(_Form):
    """The whole of an error label; it may still be unfinished."""

    label_id: Id
    span_ids: tuple[Id, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    impact: Impact | None = None
    category: Annotated[str, Field(max_length=200)] | None = None
    description: Text = ""
    evidence: tuple[EvidenceForm, ...] = ()
    phase: Phase = "blind"

    @field_validator("span_ids", "dimensions")
    @classmethod
    def _once_each(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(values))


class ErrorDelete(_Form):
    label_id: Id


class ScorePut(_Form):
    """A score of 0 to 3, or not applicable, or neither (taken back)."""

    dimension: Dimension
    value: Literal[0, 1, 2, 3] | None = None
    not_applicable: bool = False
    note: Text = ""
    confidence: Literal[1, 2, 3] | None = None
    phase: Phase = "blind"

    @field_validator("value", "confidence", mode="before")
    @classmethod
    def _whole_numbers(cls, value: Any) -> Any:
        if value is not None and type(value) is not int:  # True and 1.0 equal 1, and are no scores
            raise ValueError("must be a whole number or null")
        return value


class ReviewPut(_Form):
    """ "Done", "open again" or "skipped" with the reason; `no_error` says that an absent label is meant."""

    status: Literal["open", "submitted", "skipped"]
    no_error: bool = False
    reason: Text = ""
    active_ms: int | None = Field(default=None, ge=0)


class Reveal(_Form):
    """The person asks to see what the judges said; from here on labels are of the phase `revealed`."""


Payload = ErrorPut | ErrorDelete | ScorePut | ReviewPut | Reveal
KINDS: dict[str, type[Payload]] = {
    "error.put": ErrorPut,
    "error.delete": ErrorDelete,
    "score.put": ScorePut,
    "review.put": ReviewPut,
    "reveal": Reveal,
}


class Op(_Form):
    """One operation; `op_id` makes it idempotent."""

    op_id: Annotated[str, Field(min_length=8, max_length=64)]
    kind: Literal["error.put", "error.delete", "score.put", "review.put", "reveal"]
    payload: dict[str, Any]
    client_time: Annotated[str, Field(max_length=64)] | None = None

    def form(self) -> Payload:
        """The payload, checked. Raises `OpError`."""
        try:
            return KINDS[self.kind].model_validate(self.payload)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(piece) for piece in first["loc"])
            raise OpError(
                f"{self.kind}: {place or 'payload'}: {first['msg']}",
                remedy="correct the field and send the operation again",
                op_id=self.op_id,
            ) from error


def read_ops(raw: object) -> tuple[Op, ...]:
    """The operations of a request body. Raises `OpError`."""
    if not isinstance(raw, list) or not raw:
        raise OpError("ops must be a list with at least one operation", remedy="send at least one operation")
    try:
        return tuple(Op.model_validate(one) for one in raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(piece) for piece in first["loc"])
        raise OpError(f"an operation is malformed: {place}: {first['msg']}", remedy="reload the page") from error
