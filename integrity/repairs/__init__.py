"""Repairs: plans that a person approves, applied in one transaction, and undone."""
