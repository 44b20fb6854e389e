"""Whether what is stored is what was said, what can be done about it, what goes cold, and what goes for good."""
