"""A conversation to look at: an agent reads through LCM's own code and answers questions about it."""

from lcmsite.sample.loading import load_sample

__all__ = ["load_sample"]
