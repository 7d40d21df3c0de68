"""The ledger of opinions: labels, verdicts, matches; one database with the traces."""

from judging.ledger.tables import metadata
from judging.ledger.workspace import Workspace, WorkspaceError, open_workspace

__all__ = ["Workspace", "WorkspaceError", "metadata", "open_workspace"]
