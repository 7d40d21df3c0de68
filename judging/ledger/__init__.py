"""The ledger of opinions: labels, verdicts, matches; one database with the traces."""

from tracejury.judging.ledger.tables import metadata
from tracejury.judging.ledger.workspace import Workspace, WorkspaceError, open_workspace

__all__ = ["Workspace", "WorkspaceError", "metadata", "open_workspace"]
