"""Files that people read and tests load; no logic."""
