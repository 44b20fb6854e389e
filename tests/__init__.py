"""Makes `tests` this package: a dependency installs a package of the same name."""
