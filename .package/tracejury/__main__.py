"""Run the command: `python -m tracejury`."""

from tracejury.app.cli import main

main(prog_name="tracejury")
