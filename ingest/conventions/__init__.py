"""Dialects of attribute names, each mapped to the columns of the span table."""
