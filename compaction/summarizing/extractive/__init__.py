"""Summarizers without a model: pure functions of their sources.

The way of a text: `sentences` cuts it into units, `passages` says whose they are and how much they count, `terms`
numbers their words and names (`identifiers`), `material` says what each is worth and how much fits, `coverage` chooses,
`topics` names what is left out, `summary_form` writes it down and reads it back.
"""
