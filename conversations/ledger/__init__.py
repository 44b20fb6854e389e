"""The ledger: whole conversations as JSON Lines that anybody can verify, and from which they can be rebuilt."""
