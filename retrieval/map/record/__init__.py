"""Export the record of map runs to a file, and verify it from this file alone."""
