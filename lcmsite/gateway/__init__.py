"""Proxy between agents and model vendors: forward each request and record it.

Terms: a *host* is the program that runs an agent; an *upstream*, the address of a vendor; a *surface*, one of the
three vendor APIs; an *exchange*, one request with its answer; a *side request*, one that a host makes outside of the
conversation, as for a title; a *lane*, the exchanges of one key's session, recorded in order; the *spool*, the
directory of exchanges that wait to be recorded. A module marked *Pure* does no I/O. See also `docs/gateway.md`.
"""
