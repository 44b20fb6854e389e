"""The ledger: conversations as JSON Lines, to verify and to import."""
