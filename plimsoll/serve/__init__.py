"""`plimsoll serve`: a results folder in the browser: what is there, what runs now, two runs compared."""
