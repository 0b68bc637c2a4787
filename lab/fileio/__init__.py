"""sysbench's fileio matrix: threads × tests on one volume, with p99.9 from its histogram."""
