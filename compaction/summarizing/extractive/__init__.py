"""Summarizers without a model: pure functions of their sources.

The way of a text: `sentences` and `tool_calls` cut it into units, `passages` say whose they are, `weights` how much
they count, `vocabulary` numbers their words (`terms`, `words`) and names (`identifiers`), `material` says what each
is worth, `coverage` chooses, `packing` makes the choice fit, `page` writes it down and reads it back.
"""
