"""Language models over HTTP: a prompt in, a reply or a named failure out.

`types` has the values, `protocols` builds requests and parses replies and failures, and `client` sends, retries and
keeps the deadline: none of them uses Django or the database. `configuration` reads the endpoints from the settings, and
`guards` decide whether one may be called now.
"""
