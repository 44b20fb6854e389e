"""Verbs for the site administrator: settings, backups, indexes, MCP over stdio."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connections

from lcmsite.catalogue.problems import INTERRUPTED_EXIT_CODE, problem_of
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.verbs import argument, verb, waiting
from lcmsite.effective_settings import EffectiveSettings, settings_in_force
from lcmsite.ops.backup.backups import back_up, restore
from lcmsite.ops.health import site_health
from lcmsite.periodic_tasks import read_schedule
from retrieval.policy import RetrievalPolicy
from retrieval.search.patterns import trigrams
from retrieval.semantic.embedders import Embedders

DEFAULT_GATEWAY_PORT = 8002
TRIGRAMS = "Working on the trigram index ..."


@verb("settings", for_operator=True)
def show_settings(session: Session, arguments: Namespace) -> Any:
    """Show every setting with its value and its source.

    The source is the default or the environment. Secrets are not shown. A secret can be in a file: instead of NAME,
    set NAME_FILE to the file's path. README.md says what each setting does.
    """
    return EffectiveSettings(settings_in_force())


@verb("health", for_operator=True)
def show_health(session: Session, arguments: Namespace) -> Any:
    """Show whether database, Redis and workers can be used from this machine.

    A web server responds with the same at `/readyz`. The exit status is 1 if something is missing.
    """
    return site_health()


@verb("clock", for_operator=True)
def show_clock(session: Session, arguments: Namespace) -> Any:
    """List the periodic tasks and the contents of the task queues.

    Times are in UTC. Workers run these tasks; a queued task only tells a worker to process the pending rows.
    """
    return read_schedule()


@verb(
    "gateway",
    argument("--host", default=None, help="The address to listen on. Default: LCM_HOST."),
    argument("--port", type=int, default=None, help="The port to listen on. Default: LCM_GATEWAY_PORT."),
    for_operator=True,
)
def serve_gateway(session: Session, arguments: Namespace) -> None:
    """Serve the gateway alone, until Ctrl-C.

    Agents call their models through the gateway, and LCM records the exchanges. `lcm up` also serves it.
    """
    # Imported here: only this verb needs the server.
    from lcmsite.gateway.gateway_app import Gateway
    from lcmsite.server.serving import bind_port, serve

    host = arguments.host or settings.DEPLOYMENT.host
    port = arguments.port or settings.DEPLOYMENT.gateway_port or DEFAULT_GATEWAY_PORT
    listener = bind_port(host, port, "--port", "LCM_GATEWAY_PORT")
    connections.close_all()
    serve(Gateway.from_settings(), listener, lifespan="on")


@verb(
    "mcp",
    argument(
        "--tools",
        metavar="NAMES",
        default="",
        help="Offer only these tools, separated by commas; reading stands for those that look something up.",
    ),
)
def serve_agents(session: Session, arguments: Namespace) -> None:
    """Serve the agent tools (MCP) on standard input and output.

    For an agent program that starts MCP servers as child processes; exits when standard input closes. LCM_API_KEY has
    the key, which determines workspace and scopes.
    """
    # Imported here: only this verb needs the library of the protocol.
    from lcmsite.mcp.stdio import serve
    from lcmsite.mcp.tool_list import chosen_tools

    offered = chosen_tools(arguments.tools)
    try:
        _ = session.default_creating_caller
    except Exception as refusal:
        # A retryable problem is reported to the agent with each call, any other one here.
        if not problem_of(refusal).retryable:
            raise
    finally:
        connections.close_all()
    # Exit at once: a thread that reads standard input would notice a stop only at the next line.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED_EXIT_CODE))
    # A new caller for each call, so that a revoked key stops working at once.
    serve(lambda: replace(session).caller, offered)


@verb(
    "backup",
    argument("directory", metavar="DIR", help="The directory to write; it must be empty or not exist yet."),
    argument(
        "--unverified",
        action="store_true",
        help="Skip the trial restore. This is faster, but nothing proves that the backup can be restored.",
    ),
    for_operator=True,
    description=back_up.__doc__,
)
def create_backup(session: Session, arguments: Namespace) -> Any:
    with waiting("Backing up ..."):
        return back_up(Path(arguments.directory), verify=not arguments.unverified, scope=OPERATOR)


@verb(
    "restore",
    argument("directory", metavar="DIR", help="A directory that `lcm backup` has written."),
    for_operator=True,
    description=restore.__doc__,
)
def restore_backup(session: Session, arguments: Namespace) -> Any:
    with waiting("Restoring ..."):
        return restore(Path(arguments.directory), scope=OPERATOR)


@verb("trigram-index build", for_operator=True)
def build_trigram_index(session: Session, arguments: Namespace) -> Any:
    """Build the trigram index, which makes regular expressions fast.

    The index needs the extension pg_trgm. Every append then also updates the index.
    """
    with waiting(TRIGRAMS):
        return trigrams.build(RetrievalPolicy.from_settings())


@verb("trigram-index drop", for_operator=True)
def drop_trigram_index(session: Session, arguments: Namespace) -> Any:
    with waiting(TRIGRAMS):
        return trigrams.drop(RetrievalPolicy.from_settings())


@verb("trigram-index status", for_operator=True)
def show_trigram_index(session: Session, arguments: Namespace) -> Any:
    return trigrams.status(RetrievalPolicy.from_settings())


@verb("embed setup", for_operator=True, description=Embedders.set_up.__doc__)
def set_up_embedder(session: Session, arguments: Namespace) -> Any:
    with waiting("Asking the embedder ..."):
        return Embedders.from_settings().set_up()


@verb("embed status", for_operator=True)
def show_embedders(session: Session, arguments: Namespace) -> Any:
    """Show whether semantic search is ready, and the progress of each embedder."""
    return Embedders.from_settings().status()


@verb(
    "embed drop",
    argument("embedder_id", type=int, metavar="ID", help="The embedder, as `lcm embed status` lists it."),
    for_operator=True,
    description=Embedders.drop.__doc__,
)
def drop_embedder(session: Session, arguments: Namespace) -> Any:
    return Embedders.from_settings().drop(embedder_id=arguments.embedder_id)
