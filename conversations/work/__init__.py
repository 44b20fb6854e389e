"""Background work as rows: `queue` claims, leases and retries them."""
