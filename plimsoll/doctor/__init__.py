"""`plimsoll doctor`: what is here, what is missing for what, is this machine fit to generate load."""
