"""The ids of the sample traces, which depend on nothing but their key."""

from __future__ import annotations

import hashlib


def identifier(seed: str, digits: int) -> str:
    """The first hex digits of the seed's SHA-256."""
    return hashlib.sha256(seed.encode()).hexdigest()[:digits]


def sample_trace_id(key: str) -> str:
    return identifier(f"tracejury sample {key}", 32)


def sample_span_id(key: str, number: int) -> str:
    return identifier(f"tracejury sample {key} span {number}", 16)
