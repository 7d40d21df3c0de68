"""Several judge models that give one verdict."""
