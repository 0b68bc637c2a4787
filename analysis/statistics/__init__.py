"""Records in, numbers out: pure functions over arrays. Times are microseconds inside, milliseconds outside."""
