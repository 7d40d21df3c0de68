"""The store of opinions: labels, verdicts, matches; one database with the traces."""

from tracejury.judging.store.tables import metadata
from tracejury.judging.store.workspace import Workspace, WorkspaceError, open_workspace

__all__ = ["Workspace", "WorkspaceError", "metadata", "open_workspace"]
