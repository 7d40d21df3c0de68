"""Running GAIA2 here: ARE in an environment of its own, a worker process an execution, models asked by this process."""
