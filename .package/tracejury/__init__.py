"""People and LLM judges read the same agent trace, span by span; a researcher sees how far they agree."""
