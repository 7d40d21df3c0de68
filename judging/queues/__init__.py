"""Work handed out to annotators."""
