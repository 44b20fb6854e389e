"""What is checked of each sort of line, when a ledger is verified."""
