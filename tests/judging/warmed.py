"""Imported once by the fork server, so that each owner starts in milliseconds: one call that is refused warms all."""

import asyncio
import contextlib

from tests.judging import run_owners as run_owners

from tracejury.judging.judges.model import LitellmModel, ModelError, ModelRequest
from tracejury.judging.judges.prompt import Prompt


def warm_up() -> None:
    request = ModelRequest(prompt=Prompt(system="s", prefix="p", suffix="s"), form="template", schema={})
    with contextlib.suppress(ModelError):
        closed = "http://127.0.0.1:9/v1"
        asyncio.run(LitellmModel(name="openai/fake", api_base=closed, api_key="k", timeout_s=5)(request))


warm_up()
