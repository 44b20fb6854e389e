"""The HTTP server: uvicorn with limits, in front of the site (WSGI) and of the tools of agents (ASGI).

A connection that waits for its client holds no thread and no database connection. Every wait for a client has a
timeout, every buffer a bound.
"""
