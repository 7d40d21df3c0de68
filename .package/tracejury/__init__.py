"""People and LLM judges examine the same agent trace, span by span; a researcher learns how far they agree.

`import tracejury as tj` gives the functions of `tracejury.app.notebook`; they are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracejury.app.notebook import Workspace, alpha, judge, judge_async, open, precision_recall, read

__all__ = ["Workspace", "alpha", "judge", "judge_async", "open", "precision_recall", "read"]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tracejury.app import notebook

        return getattr(notebook, name)
    raise AttributeError(
        f"tracejury has no {name!r}; it has {', '.join(__all__)} and the packages app, ingest, judging"
    )
