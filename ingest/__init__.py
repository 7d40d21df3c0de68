"""Trace files in, span table out; knows nothing of judges or screens."""
