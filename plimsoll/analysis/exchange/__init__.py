"""Results of other programs become run directories, runs become files for other programs, shards one run."""
