"""Where the samples are written, and the writing."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "data" / "samples"
EXPORTS = ROOT / "tests" / "ingest" / "exports"
DIALECTS = ROOT / "tests" / "ingest" / "dialects"


def write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
