"""Rows as background work: `queue` claims, leases and retries them for every room."""
