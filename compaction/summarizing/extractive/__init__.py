"""Summarizers without a model: pure functions of their sources.

A text passes these modules in order: `sentences` cuts it into units, `passages` adds speakers and weights, `terms`
numbers words and names (found by `identifiers`), `material` scores them and sets the budget, `coverage` chooses units,
`topics` lists what the summary omits, and `summary_form` writes the summary, and parses older ones.
"""
