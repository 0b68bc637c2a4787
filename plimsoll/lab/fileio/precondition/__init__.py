"""A volume as it is when full and used: filled, then overwritten at random until it is steady, by fio."""
