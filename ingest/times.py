"""Times of every source as UTC microseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tracejury.ingest.trace import Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DURATION = re.compile(
    r"(-)?P(?:([\d.]+)D)?(?:T(?:(-?[\d.]+)H)?(?:(-?[\d.]+)M)?(?:(-?[\d.]+)S)?)?", re.ASCII | re.IGNORECASE
)
_MAX = 253_402_300_800_000_000
"""The year 10000: no column and no chart takes a later time."""


def from_iso(value: Json) -> int | None:
    """Microseconds of an ISO 8601 time (without zone: UTC); None when the value is none. Digits below are cut."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
    except ValueError:
        return None
    return from_datetime(moment)


def from_datetime(moment: datetime) -> int | None:
    """Microseconds of a time (without zone: UTC)."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return (moment - _EPOCH) // _MICROSECOND
    except OverflowError:
        return None


def from_nanoseconds(value: Json) -> int | None:
    """Microseconds of nanoseconds given as a number or its text; 0 means "not set" in OpenTelemetry: None."""
    count = integer(value)
    if count is None or count <= 0 or count // 1000 >= _MAX:
        return None
    return count // 1000


def from_seconds(value: Json) -> int | None:
    """Microseconds of Unix seconds given as a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not abs(value) < _MAX / 1e6:
        return None
    return round(value * 1_000_000)


def from_any(value: Json) -> int | None:
    """Microseconds of an ISO text or of a Unix number whose size tells seconds, milli-, micro- or nanoseconds."""
    if isinstance(value, str) and not value.strip().lstrip("-").isdigit():
        return from_iso(value)
    number = value if isinstance(value, float) else integer(value)
    if number is None or number <= 0:
        return None
    for bound, factor in ((1e11, 1_000_000), (1e14, 1_000), (1e17, 1)):
        if number < bound:
            return round(number * factor)
    return from_nanoseconds(int(number))


def integer(value: Json) -> int | None:
    """A whole number given as number, as text, or as the `{low, high}` of JavaScript's 64 bit integers (protobufjs)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and len(value) <= 40:
        try:
            return int(value)
        except ValueError:
            return None
    return _of_halves(value) if isinstance(value, dict) else None


def _of_halves(value: dict[str, Json]) -> int | None:
    low, high = value.get("low"), value.get("high")
    if not value.keys() <= {"low", "high", "unsigned"} or not isinstance(low, int) or not isinstance(high, int):
        return None
    number = (high & 0xFFFFFFFF) << 32 | (low & 0xFFFFFFFF)
    return number - 2**64 if number >= 2**63 and not value.get("unsigned") else number


def iso_duration(value: Json) -> int | None:
    """Microseconds of an ISO 8601 duration of days and below (`PT9M9.9S`, also negative); None when it is none."""
    if not isinstance(value, str) or len(value) > 60:
        return None
    match = _DURATION.fullmatch(value)
    if match is None or value.upper().endswith(("P", "T")):
        return None
    sign, *parts = match.groups()
    try:
        seconds = sum(float(part) * unit for part, unit in zip(parts, (86_400, 3_600, 60, 1), strict=True) if part)
    except ValueError:
        return None
    if abs(seconds) * 1e6 >= _MAX:
        return None
    return round(seconds * 1_000_000) * (-1 if sign else 1)
