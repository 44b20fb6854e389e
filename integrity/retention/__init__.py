"""Retention: move texts to the cold tier and back, and erase them permanently."""
