"""Trust pages: integrity, repairs, quarantine, retention and erasure."""
