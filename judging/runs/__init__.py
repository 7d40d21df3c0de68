"""Starts of judges over a grid of cells, and their verdicts."""
