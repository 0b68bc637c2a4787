"""What an fsync takes on a volume, apart from reads and writes: measured with fio, a cell at a time."""
