"""Render results as short text for a model, without empty fields or hashes.

Stored texts are rendered verbatim. Other lines contain only what a model needs for its next call. A record without its
own renderer gets one line for each field.
"""
