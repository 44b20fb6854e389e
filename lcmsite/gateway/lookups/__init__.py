"""Offer LCM's tools to the model in shortened requests, and run their calls."""
