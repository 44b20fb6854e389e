"""Import histories from files: read any known format, write in batches, continue an earlier run."""
