"""Errors that people marked and findings of judges that describe the same thing."""
