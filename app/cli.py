"""The command `tracejury`: `main` with all its commands, which a module joins to it when it is imported."""

from tracejury.app.command_line import corpora, gaia2, judging, labels, results, start, team, traces  # noqa: F401
from tracejury.app.command_line.root import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
