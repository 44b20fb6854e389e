"""Summarizers: sources in, a text out. No database, no clock, and in those kept here no model and no network.

The way of a text: `sentences` and `tool_calls` cut it into units, `passages` say whose they are, `weights` how much
they count, `vocabulary` numbers their words (`terms`, `words`) and names (`identifiers`), `material` says what each
is worth, `coverage` chooses, `packing` makes the choice fit, `page` writes it down and reads it back.
"""
