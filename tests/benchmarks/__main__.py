"""`make bench`: every benchmark, or those named: `make bench ARGS="ingest agreement"`."""

import importlib
import sys
from pathlib import Path

FOLDER = Path(__file__).parent


def main(names: list[str]) -> None:
    known = sorted(path.stem.removeprefix("bench_") for path in FOLDER.glob("bench_*.py"))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    for name in names or known:
        print(f"\n== {name} ".ljust(80, "="), flush=True)
        importlib.import_module(f"tests.benchmarks.bench_{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
