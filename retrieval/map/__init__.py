"""Map runs: one prompt over many items, as rows that any worker continues."""
