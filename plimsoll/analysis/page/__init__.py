"""What every HTML page is made of: its shell, its sections, its charts."""
