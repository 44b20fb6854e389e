"""Histories from files: read in any of the known forms, written in batches, taken up again where they stopped."""
