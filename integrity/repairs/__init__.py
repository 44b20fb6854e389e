"""Repairs: planned, approved by a person, applied in one transaction, undone."""
