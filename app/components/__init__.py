"""Pieces of screens: values in, value out; they read no store."""
