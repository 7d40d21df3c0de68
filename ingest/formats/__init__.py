"""One module a trace format, each with the same three parts: NAME, sniff, read."""
