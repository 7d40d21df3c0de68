"""Frames, estimates and files for the researcher."""
