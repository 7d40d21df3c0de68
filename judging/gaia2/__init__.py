"""Running GAIA2 here: ARE in an environment of its own, a worker process a run, models asked by this process."""
