"""The command `token`: tokens for scripts. Who holds the workspace's folder may make one for anybody."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from tracejury.app.api import scripts
from tracejury.app.api.rights import still_may
from tracejury.app.commands.output import counted, opened, say
from tracejury.app.config import config
from tracejury.app.grants import TokenError
from tracejury.ingest.store import write_transaction
from tracejury.judging.store.locks import PEOPLE
from tracejury.judging.store.people import revoke_script_tokens

BY = "command line"


def token(home: Path | None, person: str | None, *, use: str, days: int) -> None:
    """The token on standard output; for whom, and how long it is good, on standard error."""
    space, name = opened(home), person or config().user
    try:
        still_may(space, name, "researcher")
    except TokenError as error:
        raise click.UsageError(f"{name!r} may not do this. Try: --person NAME of a researcher") from error
    click.echo(scripts.mint_script(space, name, use=cast("scripts.Use", use), days=days, by=BY))
    say(f"for {name}, to {use}, expires in {counted(days, 'day')}; --revoke ends it")


def revoke(home: Path | None, person: str | None) -> None:
    space, name = opened(home), person or config().user
    with write_transaction(space.engine, PEOPLE) as connection:
        revoke_script_tokens(connection, name, by=BY)
    say(f"all tokens of {name} are revoked")
