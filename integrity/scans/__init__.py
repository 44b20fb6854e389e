"""Background checks: requested, claimed by workers, and slow on purpose."""
