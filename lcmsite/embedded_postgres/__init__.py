"""An embedded PostgreSQL server that lives as long as its last lease.

`lease` is what callers use: it takes a shared lock and makes sure a `keeper` process is at work. The keeper starts the
server and waits for the exclusive lock, which it gets when the last user has left, however that user ended. Locks are
the kernel's, so a killed process leaves nothing behind that could be wrong.
"""
