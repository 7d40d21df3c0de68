"""A corpus: traces of many files as a partitioned Parquet data set, for more than one workspace holds."""
