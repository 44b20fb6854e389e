"""The record of map runs as a file: exported, and verified from the file alone."""
