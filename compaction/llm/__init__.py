"""Language models over HTTP: a prompt in, a reply or a named failure out.

`types` defines the values. `protocols` builds requests, and parses replies and failures. `client` sends, retries and
keeps the deadline. These three use neither Django nor the database. `configuration` reads the endpoints from the
settings. `guards` decides whether an endpoint may be called now.
"""
