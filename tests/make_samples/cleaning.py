"""Takes out of recorded text what belongs to the machine: paths, addresses, real times."""

from __future__ import annotations

import re
from typing import Any

_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,16}\b")
_STACK_PATH = re.compile(r'File "(?:[^"]*/)?(?:site-packages|python3\.\d+|make_samples)/([^"]+)"')
_ANY_PATH = re.compile(r'File "/[^"]*/([^"/]+)"')
_STEP_TIME = re.compile(r"start_time=\d+\.\d+")


def clean(text: str, start_ns: int) -> str:
    """No machine paths, addresses or real times."""
    text = _STACK_PATH.sub(r'File "\1"', text)
    text = _ANY_PATH.sub(r'File "\1"', text)
    seen: dict[str, str] = {}
    text = _ADDRESS.sub(lambda found: seen.setdefault(found[0], f"0x7f00{len(seen):08x}"), text)
    return _STEP_TIME.sub(f"start_time={start_ns / 1e9:.6f}", text)


def clean_json(value: Any) -> Any:
    """`clean` for every text of a JSON value, at the time 0."""
    if isinstance(value, dict):
        return {key: clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    return clean(value, 0) if isinstance(value, str) else value
