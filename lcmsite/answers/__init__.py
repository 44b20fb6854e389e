"""Render answers as short text for a model, without empty fields or hashes.

Stored texts are rendered verbatim; around them is only what a reader needs to go on. Records without a renderer of
their own get a line for each field.
"""
