"""The command `tracejury`: `main` with all its commands."""

from tracejury.app.command_line import corpora, gaia2, judging, labels, results, start, team, traces
from tracejury.app.command_line.root import main

__all__ = ["main"]
COMMANDS = (corpora, gaia2, judging, labels, results, start, team, traces)

if __name__ == "__main__":
    main()
