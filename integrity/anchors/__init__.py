"""Anchors: signed heads of all chains, which reveal a rewritten history."""
