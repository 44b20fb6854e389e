"""A site that `lcm up` runs, asked from outside; and what its database says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import psycopg

from lcmsite.embedded_postgres.location import DATABASE, PORT, ROLE, Location

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Site:
    """The API of a running site, for the holder of a key."""

    port: int
    key: str

    def get(self, path: str) -> Any:
        return json.loads(self._asked(f"api/v1/{path}"))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return json.loads(self._asked(f"api/v1/{path}", json.dumps(body).encode()))

    def refused(self, path: str, body: dict[str, Any]) -> Any:
        """The problem that comes instead of an answer."""
        try:
            self.post(path, body)
        except urllib.error.HTTPError as refusal:
            return json.load(refusal)
        raise AssertionError("it was not refused")

    def text(self, path: str) -> str:
        return self._asked(path).decode()

    def _asked(self, path: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.read()


@dataclass(frozen=True)
class EmbeddedDatabase:
    """The database in a data directory."""

    data_dir: Path

    def one(self, statement: str) -> Any:
        [[value]] = self._asked(statement)
        return value

    def by(self, statement: str) -> dict[tuple[str, ...], int]:
        """The last column by those before it."""
        return {tuple(row[:-1]): row[-1] for row in self._asked(statement)}

    def _asked(self, statement: str) -> list[tuple[Any, ...]]:
        place = {"host": Location(self.data_dir).socket_dir, "port": PORT, "user": ROLE, "dbname": DATABASE}
        with psycopg.connect(**place) as connection:
            return connection.execute(statement).fetchall()


def lcm_in(data_dir: Path, *arguments: str) -> Any:
    """What the command line answers there, as JSON."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LCM_")}
    ran = subprocess.run(
        [sys.executable, "manage.py", "lcm", "--json", *arguments],
        cwd=PROJECT,
        env=environment | {"LCM_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def a_key_in(data_dir: Path, *scopes: str) -> str:
    return lcm_in(
        data_dir,
        "key",
        "create",
        "test",
        *chain.from_iterable(("--scope", scope) for scope in scopes or ("write",)),
    )["key"]
