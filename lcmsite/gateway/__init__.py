"""Proxy between agents and model vendors: forward each request and record it."""
