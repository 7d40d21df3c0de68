"""The command `fetch`: public data sets through their hub's own library, with the user's own token."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from tracejury.app.commands import opinions, traces
from tracejury.app.commands.output import counted, say

TRAIL = "PatronusAI/TRAIL"
_TRANSPORTS = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3"})
AGAIN = "Try: check the network and HF_TOKEN, then run it again; files that are already here are not downloaded twice"
GATED = (
    "{} is gated: ask for access on its page, make a token, and run again with HF_TOKEN set (or after `hf auth login`)"
)


def fetch(name: str, home: Path | None) -> int:
    """Load a data set into the workspace; exit codes as those of `ingest` and `labels import`."""
    assert name == "trail"
    with tempfile.TemporaryDirectory(prefix="tracejury-") as folder:
        files = download(TRAIL, Path(folder))
        say(f"{counted(len(files), 'file')} of {TRAIL} loaded")
        read = traces.ingest([str(file) for file in files], home, as_json=False)
        labelled = opinions.import_labels(files, home, form="trail", as_json=False)
    return max(read, labelled)


def download(repository: str, folder: Path, *, revision: str | None = None, words: Sequence[str] = ()) -> list[Path]:
    """The Parquet files of a data set whose paths have these words. Ends the command with what to do without them."""
    try:
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
    except ImportError as error:
        raise click.ClickException("fetch needs the Hugging Face library. Try: pip install 'tracejury[hub]'") from error
    try:
        listed = HfApi().dataset_info(repository, revision=revision).siblings or []
        parquet = [file.rfilename for file in listed if file.rfilename.endswith(".parquet")]
        names = [name for name in parquet if set(words) <= set(re.split(r"[/.-]", name))]
        if not names:
            what = f" of {' '.join(words)}" if words else ""
            raise click.ClickException(f"{repository} holds no Parquet file{what}: has the data set changed?")
        return [
            Path(hf_hub_download(repository, file, repo_type="dataset", local_dir=folder, revision=revision))
            for file in sorted(names)
        ]
    except (GatedRepoError, RepositoryNotFoundError) as error:
        raise click.ClickException(GATED.format(repository)) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise click.ClickException(
            f"Hugging Face cannot be reached or refuses: {_first_line(error)}. {AGAIN}"
        ) from error
    except Exception as error:  # the hub's HTTP library has its own errors of connection, which it does not wrap
        if type(error).__module__.split(".")[0] not in _TRANSPORTS:
            raise
        raise click.ClickException(f"Hugging Face cannot be reached: {_first_line(error)}. {AGAIN}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0] or type(error).__name__
