"""Language models over HTTP: a prompt in, a reply or a named failure out.

`types` has what goes in and comes out, `protocols` builds requests and reads replies and failures, and `client` sends,
retries and keeps the deadline: none of them uses Django or the database.
`configuration` says which endpoints there are, `guards` whether one may be called now.
"""
