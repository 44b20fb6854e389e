"""Anchors: signed files with the heads of all chains, which reveal a completely rewritten history."""
