"""Map runs: process many items with one prompt; each item is a job in a table."""
