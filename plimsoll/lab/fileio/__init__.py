"""What a volume gives: sysbench's fileio matrix, threads × tests with p99.9; by fio what an fsync takes."""
