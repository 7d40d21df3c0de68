"""Measurements, side by side in one run; no tests."""
