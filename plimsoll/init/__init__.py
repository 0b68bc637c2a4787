"""`plimsoll init`: five questions, and the lab.yml and gates.yml that follow from the answers."""
