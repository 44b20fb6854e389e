"""Without a model, a summary is a function of what it was made from: two databases come to the same, byte for byte."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from lcmsite.sample.code_base import CodeBase
from lcmsite.sample.script import sample_messages
from tests.flows.processes import PROJECT, database_url, environment

SECONDS = 100
# Enough for summaries of summaries of summaries.
MESSAGES = 160


@contextmanager
def databases(*names: str) -> Iterator[list[str]]:
    """The addresses of empty databases beside that of the tests, gone afterwards."""
    server = database_url()
    with psycopg.connect(server, autocommit=True) as connection:
        try:
            for name in names:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            yield [urlsplit(server)._replace(path=f"/{name}").geturl() for name in names]
        finally:
            for name in names:
                connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def compacted(url: str, *arguments: str, hash_seed: str) -> dict[str, Any]:
    """What a process of its own makes of the conversation, in this database and with this order of hashes."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.flows.compacting", *arguments],
        cwd=PROJECT,
        env={**environment(log_level="ERROR"), "LCM_DATABASE_URL": url, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def conversation(tmp_path: Path) -> str:
    """The path of one that is long enough."""
    path = tmp_path / "conversation"
    path.write_bytes(pickle.dumps(sample_messages(CodeBase.read(PROJECT), at_least=MESSAGES)))
    return str(path)


@pytest.mark.thorough
def test_two_databases_come_to_the_same_texts_and_hashes(committed_db, conversation: str):
    names = [f"lcm_same_{os.getpid()}_{number}" for number in (1, 2)]

    with databases(*names) as (one, another), ThreadPoolExecutor(2) as both:
        first = both.submit(compacted, one, conversation, "0", hash_seed="1")
        second = both.submit(compacted, another, conversation, "97", hash_seed="2")
        here, there = first.result(), second.result()

    assert_the_same(here, there)


def assert_the_same(here: dict[str, Any], there: dict[str, Any]) -> None:
    for model in ("extractive", "telegraphic"):
        assert not set(here[model].pop("ids")) & set(there[model].pop("ids"))
        assert here[model] == there[model]
        assert {summary["model"] for summary in here[model]["summaries"]} == {model}
        assert max(summary["depth"] for summary in here[model]["summaries"]) >= 2
