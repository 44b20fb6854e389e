"""`lcm up`: run everything LCM needs in one process tree, until Ctrl-C."""

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from typing import Any, TextIO

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from conversations.errors import Unavailable
from lcmsite.cli.cli_session import default_workspace
from lcmsite.connections import embedded_database, require_servers
from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from lcmsite.embedded_postgres.location import EmbeddedPostgresError
from lcmsite.gateway.recording.exchange_spool import Spool, SpoolInUse
from lcmsite.management.commands.migrate import exclusive, migrating
from lcmsite.ops.logs import log_file, rotate, tail
from lcmsite.ops.metrics.directory import shared_metrics
from lcmsite.ops.shell_commands import manage_py
from lcmsite.ops.supervisor import Process, ProcessKeepsDying, Supervisor
from lcmsite.queues import QUEUES
from lcmsite.server.serving import bind_port, url_of

logger = structlog.get_logger(__name__)

SECONDS_TO_GET_READY = 60
SECONDS_TO_STOP_A_START = 2
SECONDS_BETWEEN_POLLS = 0.2
RULE = "-" * 80


class Command(BaseCommand):
    help = "Run LCM: its database (unless LCM_DATABASE_URL names one), migrations, web server and workers."
    is_ready = False
    # The log file; None if everything is logged to the terminal.
    log: TextIO | None = None

    def run_from_argv(self, argv: list[str]) -> None:
        # Imported here: the command line imports this module for `lcm up`.
        from lcmsite.cli.program import run

        # `manage.py up` also reports problems as LCM's command line does.
        sys.exit(run(argv[1:]))

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.DEPLOYMENT.host, help="the address to listen on")
        parser.add_argument("--port", type=int, default=settings.DEPLOYMENT.port, help="the port to listen on")
        parser.add_argument(
            "--mcp-port", type=int, default=settings.DEPLOYMENT.mcp_port, help="the port for agents (MCP); 0 for none"
        )
        parser.add_argument(
            "--gateway-port",
            type=int,
            default=settings.DEPLOYMENT.gateway_port,
            help="the port of the gateway, which forwards agents' model calls; 0 for none",
        )
        parser.add_argument("--no-web", action="store_true", help="run no web server, MCP server and gateway here")
        parser.add_argument("--no-mcp", action="store_true", help="run no MCP server for agents here")
        parser.add_argument("--no-worker", action="store_true", help="run no workers for background tasks here")
        parser.add_argument("--sample", action="store_true", help="load a sample conversation, once")
        parser.add_argument(
            "--verbose", action="store_true", help="show the log here, not in lcm.log in the data directory"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        given = Namespace(**options)
        host, port, mcp_port = given.host, given.port, given.mcp_port
        # Both signals stop LCM at any moment, even while the database is starting. SIGINT is set explicitly, because
        # shells make background processes ignore it.
        for request_to_stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(request_to_stop, signal.default_int_handler)
        database = embedded_database() if settings.EMBEDDED_DATABASE else None
        processes = []
        if not given.no_web:
            listener = bind_port(host, port, "--port", "LCM_PORT")
            processes += [Process("web", ("web",), listener) for _ in range(settings.DEPLOYMENT.web_workers)]
        processes += [] if given.no_worker else [Process(f"{queue} worker", ("worker", queue)) for queue in QUEUES]
        url = None if given.no_web else url_of(host, port)
        for_agents = None
        if mcp_port != 0 and not (given.no_web or given.no_mcp):
            listener = bind_port(host, mcp_port, "--mcp-port", "LCM_MCP_PORT", taken=(port,))
            processes.append(Process("mcp", ("mcp",), listener))
            for_agents = f"{url_of(host, mcp_port)}/mcp"
        gateway = None
        if given.gateway_port != 0 and not given.no_web:
            listener = bind_port(host, given.gateway_port, "--gateway-port", "LCM_GATEWAY_PORT", taken=(port, mcp_port))
            _require_own_spool()
            processes.append(Process("gateway", ("gateway",), listener))
            gateway = url_of(host, given.gateway_port)
        require_servers()
        # With an explicit log format, the log stays on standard error.
        is_quiet = not given.verbose and settings.DEPLOYMENT.log_format == "auto"
        with log_file(settings.DATA_DIR) if is_quiet else nullcontext() as self.log:
            began_at = self.log.seek(0, os.SEEK_END) if self.log else 0
            for process in processes:
                process.output = self.log
            try:
                with database.lease() if database else nullcontext(), shared_metrics(settings.DATA_DIR):
                    try:
                        self._migrate()
                        self._run(Supervisor(processes), database, url, for_agents, gateway, sample=given.sample)
                    finally:
                        connection.close()
            except KeyboardInterrupt:
                if not self.is_ready:
                    raise
                self._announce("LCM has stopped.", event="stopped")
            except (EmbeddedPostgresError, ProcessKeepsDying, OSError, Unavailable) as failure:
                if self.log is not None:
                    sys.stderr.write(tail(self.log, since=began_at))
                raise Unavailable(getattr(failure, "detail", str(failure))) from failure

    def _migrate(self) -> None:
        """Migrate the database, and create the default workspace."""
        with migrating():
            executor = MigrationExecutor(connection)
            if plan := executor.migration_plan(executor.loader.graph.leaf_nodes()):
                self._print_line("Making the tables of a new database ..." if len(plan) > 1 else "Migrating ...")
                verbosity = 0 if settings.LOGS_ONLY_JSON else 1
                call_command("migrate", interactive=False, verbosity=verbosity, stdout=self.log or self.stdout)
                logger.info("migrated", migrations=len(plan))
        default_workspace()

    def _run(
        self,
        supervisor: Supervisor,
        database: EmbeddedPostgres | None,
        url: str | None,
        for_agents: str | None,
        gateway: str | None,
        *,
        sample: bool,
    ) -> None:
        try:
            if url is not None:
                self._wait_until_ready(supervisor.processes[0], url)
            # The others start after the web server, so that it is ready sooner.
            supervisor.poll()
            self.is_ready = True
            introduction = self._sample(url) if sample and url is not None else []
            agents = f", for agents (MCP) at {for_agents}" if for_agents else ""
            agents += f", as a gateway to models at {gateway}" if gateway else ""
            ready = f"LCM is ready{f' at {url}' if url else ''}{agents}. Ctrl-C stops it."
            self._print_line(RULE)
            self._announce(ready, event="ready", url=url, mcp_url=for_agents, gateway_url=gateway)
            if url is not None:
                self._print_line(f"  Admin    {url}/admin/  ({who_may_enter()})")
            if self.log is not None:
                self._print_line(f"  Log      {self.log.name}  (--verbose shows it here)")
            for line in introduction:
                self._announce(line, event="sample", text=line.strip())
            self._print_line(RULE)
            while True:
                supervisor.poll()
                if self.log is not None:
                    rotate(self.log)
                if database is not None and not database.has_keeper():
                    database.ensure_running()
                time.sleep(SECONDS_BETWEEN_POLLS)
        finally:
            if not self.is_ready:
                # There is no work to finish, and a web server that is still starting may ignore SIGTERM.
                supervisor.seconds_to_stop = SECONDS_TO_STOP_A_START
            supervisor.stop()

    def _sample(self, url: str) -> list[str]:
        """Load the sample, and return the lines that introduce it."""
        # Imported here: only --sample needs it.
        from lcmsite.sample.loading import load_sample

        self._print_line("Loading the sample conversation ...")
        with exclusive("lcm.sample"):
            return load_sample(url=url)

    def _print_line(self, line: str) -> None:
        if not settings.LOGS_ONLY_JSON:
            self.stdout.write(line)
            self.stdout.flush()

    def _announce(self, sentence: str, *, event: str, **facts: Any) -> None:
        """Write a sentence for people; if only JSON is logged, log the event instead."""
        if settings.LOGS_ONLY_JSON:
            logger.info(event, **facts)
        self._print_line(sentence)

    def _wait_until_ready(self, web: Process, url: str) -> None:
        web.poll()
        deadline = time.monotonic() + SECONDS_TO_GET_READY
        while (answer := _readiness(url)) is not None:
            if time.monotonic() > deadline:
                raise Unavailable(f"LCM did not get ready: {answer}")
            web.poll()
            time.sleep(0.05)


def _require_own_spool() -> None:
    """Raise CommandError if another gateway uses the data directory.

    This one would end and be restarted again and again.
    """
    try:
        lock = Spool.below(settings.DATA_DIR, most_bytes=0).claim()
    except SpoolInUse as refusal:
        raise CommandError(f"{refusal} Or start this LCM without a gateway: --gateway-port 0.") from refusal
    if lock is not None:
        os.close(lock)


def who_may_enter() -> str:
    """A sentence that says who may use the admin, and how to create a superuser."""
    there = get_user_model().objects.filter(is_superuser=True, is_active=True).exists()
    return f"for superusers{'' if there else '; there is none yet'}: {manage_py()} createsuperuser"


def _readiness(url: str) -> str | None:
    """None if the site is ready; otherwise its response, or the request's error."""
    allowed = next((host.lstrip(".") for host in settings.ALLOWED_HOSTS if host != "*"), "localhost")
    request = urllib.request.Request(f"{url}/readyz", headers={"Host": allowed})
    try:
        # Connect directly, not through a proxy named in the environment.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5):
            return None
    except urllib.error.HTTPError as refusal:
        return refusal.read().decode(errors="replace")
    except OSError as refusal:
        return str(refusal)
