"""`lcm mcp`: the tools of agents, over standard input and output, for a host that starts its servers itself."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser, Namespace
from dataclasses import replace

from django.db import connections

from lcmsite.catalogue.problems import INTERRUPTED_EXIT_CODE, problem_of
from lcmsite.cli.catalogue_verbs import Verb
from lcmsite.cli.cli_session import Session


def _no_arguments(parser: ArgumentParser) -> None:
    """There is nothing to say."""


def _serve(session: Session, arguments: Namespace) -> None:
    try:
        _ = session.founding_caller
    except Exception as refusal:
        # What time may cure is told to the agent, call by call; the rest to whoever has set this up.
        if not problem_of(refusal).retryable:
            raise
    finally:
        connections.close_all()
    # Nothing is left half done by it, and whoever reads standard input would not hear of it before the next line.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED_EXIT_CODE))
    # Not imported above: the protocol's library takes longer to load than most verbs to run.
    from lcmsite.mcp.stdio import serve

    # Looked up anew for each call: a key that is taken back meanwhile opens nothing any more.
    serve(lambda: replace(session).caller)


VERB = Verb(
    "mcp",
    "Serve the tools of agents on standard input and output (MCP).",
    _no_arguments,
    _serve,
    description="Serve the tools of agents on standard input and output, by the Model Context Protocol, until the "
    "input ends. The key in LCM_API_KEY says for whom.",
)
