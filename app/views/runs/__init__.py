"""The Runs page: one module a subject; `runs.py` is what the navigation opens."""
