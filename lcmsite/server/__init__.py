"""The HTTP server: uvicorn with limits, for the site and for MCP.

A connection that waits for its client holds no thread and no database connection. Every wait for a client has a
timeout, every buffer a bound.
"""
