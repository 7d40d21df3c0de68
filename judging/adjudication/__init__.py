"""Disputes between annotators, and the gold that settles them."""
