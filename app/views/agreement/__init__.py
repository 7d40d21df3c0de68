"""The page Agreement: one module a view; `agreement.py` is what the navigation opens."""
