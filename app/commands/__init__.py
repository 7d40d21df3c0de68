"""What the commands do; each module imports its heavy libraries only when a command of its own runs."""
