"""Run pg_dump and pg_restore on a database."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import make_conninfo

from conversations.errors import Invalid, Unavailable
from lcmsite.embedded_postgres.binaries import choose
from lcmsite.embedded_postgres.location import EmbeddedPostgresError

LONGEST_REASON = 500


@dataclass(frozen=True)
class Database:
    """A database's connection parameters, and the PostgreSQL tools for its server."""

    parameters: dict[str, Any]
    password: str
    tools: Path

    @classmethod
    def of(cls, connection: psycopg.Connection[Any]) -> Database:
        """The connection's database; Invalid if the tools are missing or too old."""
        info = connection.info
        major = info.server_version // 10_000
        try:
            binaries = choose()
        except EmbeddedPostgresError as refusal:
            raise Invalid(f"pg_dump and pg_restore are needed. {refusal}") from refusal
        if binaries.major < major:
            raise Invalid(
                f"The server is PostgreSQL {major}, and pg_dump here is of {binaries.major}: install the tools of"
                f" {major} on this machine."
            )
        return cls(parameters=info.get_parameters(), password=info.password, tools=binaries.directory)

    def named(self, name: str) -> Database:
        """Another database of the same server."""
        return Database(parameters={**self.parameters, "dbname": name}, password=self.password, tools=self.tools)

    @property
    def url(self) -> str:
        """The database's address in the form of LCM_DATABASE_URL."""
        given = self.parameters
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        host = quote(str(given.get("host", "")), safe="")
        name = quote(str(given["dbname"]), safe="")
        return f"postgres://{quote(str(given['user']), safe='')}{secret}@{host}:{given.get('port', 5432)}/{name}"

    def connect(self, *, autocommit: bool = False) -> psycopg.Connection[Any]:
        return psycopg.connect(make_conninfo(**self.parameters, password=self.password), autocommit=autocommit)

    def dump(self, target: Path, *, snapshot: str) -> None:
        """Dump the contents of an exported snapshot into one file."""
        what = ("--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}")
        self._run("pg_dump", *what)

    def load(self, source: Path) -> None:
        """Restore a dump into this empty database, in one transaction."""
        self._run("pg_restore", "--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", str(source))

    def _run(self, program: str, *arguments: str) -> None:
        # Other users of the machine can read arguments, so the password goes into the environment.
        environment = {**os.environ, **({"PGPASSWORD": self.password} if self.password else {})}
        done = subprocess.run(
            [str(self.tools / program), *arguments, f"--dbname={make_conninfo(**self.parameters)}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            # The first line gives the reason; later ones may quote rows.
            reason = (done.stderr.strip().splitlines() or ["It did not say why."])[0][:LONGEST_REASON]
            raise Unavailable(f"{program} failed: {reason}")
