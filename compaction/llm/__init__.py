"""Language models over HTTP: a prompt in, a reply or a named failure out.

`types` says what goes in and what comes out, `chat` and `anthropic` speak the two protocols, `failures` reads an answer
that is none, and `client` sends, waits, tries again and gives up in time: no Django and no database in any of them.
`configuration` says which endpoints there are, `guards` whether one may be called now, `withheld_calls` why not.
"""
