"""Anchors: signed files with the heads of all chains, which show that a history was rewritten as a whole."""
