"""The locks hold what they are for, pinned, with hashes: one to run LCM, one to work on it, one to install it."""

from __future__ import annotations

import importlib.metadata
import re
import sys

import pytest

from tests.architecture.house.sources import PROJECT, ROOMS, python_files

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock", "requirements-embedder.lock")

TOOLS = {"pytest", "hypothesis", "mypy", "playwright", "ruff", "schemathesis", "setuptools", "uv"}

# Wherever in a file it is imported.
_IMPORT = re.compile(r"^ *(?:import|from(?= [\w.]+ import)) (\w+)", re.M)

# Used only where it is installed, as the documentation says.
OPTIONAL = {"boto3", "botocore", "storages"}


def pinned(lock: str) -> dict[str, str]:
    """Each distribution of a lock with its version and its hashes."""
    text = (PROJECT / lock).read_text().replace("\\\n", "")
    return dict(line.split("==", 1) for line in text.splitlines())


def name_of(requirement: str) -> str:
    """The distribution that a requirement names, as the locks write it."""
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_in_a_lock_has_a_version_and_hashes(lock):
    for name, rest in pinned(lock).items():
        assert "--hash=sha256:" in rest, name


def test_the_lock_for_development_adds_to_the_one_for_production_and_changes_nothing():
    assert pinned("requirements.lock").items() <= pinned("requirements-dev.lock").items()


def test_production_installs_no_tool_of_development():
    assert pinned("requirements-dev.lock").keys() | {"setuptools"} >= TOOLS
    assert TOOLS & pinned("requirements.lock").keys() == set()


def test_what_the_code_imports_is_in_the_lock_for_production():
    owners = importlib.metadata.packages_distributions()
    ours = {*ROOMS, "templates", *sys.stdlib_module_names, *OPTIONAL}
    missing = {
        module
        for file in python_files()
        for module in {*_IMPORT.findall(file.read_text())} - ours
        if not {name_of(owner) for owner in owners.get(module, [])} & pinned("requirements.lock").keys()
    }

    assert missing == set()
