"""The store of opinions: labels, verdicts, matches; one database with the traces."""

from tracejury.judging.store.tables import metadata
from tracejury.judging.store.workspace import NoWorkspaceError, Workspace, WorkspaceError, open_workspace

__all__ = ["NoWorkspaceError", "Workspace", "WorkspaceError", "metadata", "open_workspace"]
