"""Here so that `python -m tests.benchmarks` means these tests: a package we depend on installs a `tests` of its own."""
