"""An embedded PostgreSQL server that runs while any process holds a lease on it.

Callers use `lease.py`: it takes a shared file lock, the lease, and starts a `keeper` process if none runs. The keeper
starts the server, then waits for the exclusive lock, which it gets when the last lease has ended; then it stops the
server. The kernel releases the locks of a killed process, so none is ever stale.
"""
