"""Records in, numbers out: pure functions over arrays. Microseconds inside, milliseconds outside."""
