"""Anchors: signed last hashes of all hash chains, which reveal rewritten history."""
