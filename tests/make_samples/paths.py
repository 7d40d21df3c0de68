"""Where the samples are written, and the writing."""

from __future__ import annotations

from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[2] / "data" / "samples"


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    print(f"{path.relative_to(SAMPLES)}: {path.stat().st_size:,} bytes")
