"""Describe a database's contents by one hash, and a backup's files by theirs."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

import psycopg
from pydantic import StringConstraints, TypeAdapter, ValidationError

from conversations.errors import Invalid
from conversations.files.storage import make_private
from conversations.sql import load
from lcmsite.ops.health import newer_migrations

FORMAT = "lcm-backup"
VERSION = 1
NAME = "manifest.json"
DUMP = "database.dump"
FILES = "files"

_SQL = load("lcmsite/backup.sql")


@dataclass(frozen=True)
class Holdings:
    """Counts of a database's contents, and the hash of all of them."""

    conversations: int
    messages: int
    summaries: int
    files: int
    digest: str


@dataclass(frozen=True)
class Piece:
    """One file of the backup: its path in the directory, bytes, and SHA-256."""

    # A path inside the backup's directory: a manifest may be forged.
    path: Annotated[str, StringConstraints(pattern=rf"^({re.escape(DUMP)}|{FILES}(/[0-9A-Za-z_-]+)+)$")]
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The manifest of a backup: its time, contents and files."""

    created_at: datetime
    postgresql: int
    holdings: Holdings
    pieces: tuple[Piece, ...]
    # Files in the database whose bytes were missing from the storage, or changed there.
    damaged_files: tuple[str, ...] = ()
    # The app and name of each applied migration; older backups name none.
    migrations: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Read a backup's manifest; Invalid if it is missing, unreadable or too new."""
        try:
            given = json.loads((directory / NAME).read_bytes())
            if given["format"] != FORMAT:
                raise KeyError("format")
            if given["version"] <= VERSION:
                manifest = TypeAdapter(cls).validate_python(given)
                if not newer_migrations(manifest.migrations):
                    return manifest
            raise Invalid("This backup was made by a later version of LCM: restore it with that one.")
        except FileNotFoundError:
            raise Invalid(f"There is no backup in {directory}: it holds no {NAME}.") from None
        except ValidationError as wrong:
            first = wrong.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise Invalid(f"{directory / NAME} is no backup's manifest: {where}: {first['msg']}.") from None
        except (OSError, ValueError, KeyError, TypeError) as wrong:
            raise Invalid(f"{directory / NAME} cannot be read as a backup's manifest: {wrong}.") from wrong

    def write(self, directory: Path) -> None:
        values: dict[str, Any] = asdict(self)
        values["created_at"] = self.created_at.astimezone(UTC).isoformat()
        text = json.dumps({"format": FORMAT, "version": VERSION, **values}, indent=1)
        create_private(directory / NAME)
        (directory / NAME).write_text(text + "\n", encoding="utf-8")

    def require_whole(self, directory: Path) -> None:
        """Raise Invalid unless every piece is listed, and there with its size and hash."""
        files = {piece.path.removeprefix(f"{FILES}/") for piece in self.pieces} | set(self.damaged_files)
        if DUMP not in files or len(files) != self.holdings.files + 1:
            raise Invalid(f"The backup is not whole: {NAME} does not list all of its files.")
        for piece in self.pieces:
            path = directory / piece.path
            try:
                # A device or a pipe could be read without end.
                found = (
                    piece_of(path, name=piece.path) if path.stat().st_size == piece.bytes and path.is_file() else None
                )
            except OSError as refusal:
                raise Invalid(f"The backup is not whole: {piece.path}: {refusal.strerror}.") from refusal
            if found != piece:
                raise Invalid(f"The backup is damaged: {piece.path} is not what was backed up.")


def piece_of(path: Path, *, name: str) -> Piece:
    """The record of a file, with its current size and hash."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    return Piece(path=name, bytes=path.stat().st_size, sha256=digest.hexdigest())


def create_private(path: Path) -> None:
    """Create an empty file and its missing directories, accessible only to the owner."""
    make_private(path.parent)
    path.touch(mode=0o600)


def count_holdings(database: psycopg.Connection[Any]) -> Holdings:
    """Hash and count the contents that the connection sees, in one transaction."""
    digest = hashlib.sha256()
    conversations = messages = summaries = files = 0
    with database.transaction():
        with database.cursor(name="lcm_conversations") as cursor:
            for row in cursor.execute(_SQL["conversation_digests"]):
                digest.update(_line(row))
                conversations += 1
                messages += row[2]
                summaries += row[4]
        with database.cursor(name="lcm_files") as cursor:
            for row in cursor.execute(_SQL["stored_files"]):
                digest.update(_line(row))
                files += 1
    return Holdings(
        conversations=conversations, messages=messages, summaries=summaries, files=files, digest=digest.hexdigest()
    )


def stored_files(database: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """The storage paths of files, with the SHA-256 that each must have."""
    return database.execute(_SQL["stored_files"]).fetchall()


def _line(row: tuple[Any, ...]) -> bytes:
    return json.dumps(row).encode("ascii") + b"\n"
