"""The checks of each type of line in a ledger."""
