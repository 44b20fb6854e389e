"""Repairs: planned as data, approved by a person, applied in one transaction, and undone."""
