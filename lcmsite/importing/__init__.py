"""Import histories from files, in any known format."""
