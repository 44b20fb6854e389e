"""`lcm upload` and `lcm download`: files of any size, piece by piece; a second run goes on where the first stopped."""

from __future__ import annotations

import hashlib
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService
from conversations.files.uploads import UploadService
from conversations.types import LargeFileRecord, UploadRecord
from lcmsite.cli.catalogue_verbs import Outcome, Verb
from lcmsite.cli.cli_session import Session
from lcmsite.cli.import_verbs import progress_bar
from lcmsite.types import KeyScope

_PIECE = 1024 * 1024


@dataclass(frozen=True)
class DownloadedFile:
    """Where a file's bytes went."""

    file_id: str
    path: str
    byte_size: int
    sha256: str


def _upload_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("conversation", metavar="CONVERSATION", help="The conversation: its number, or its session.")
    parser.add_argument("file", metavar="FILE", help="The file to store.")
    parser.add_argument("--mime-type", metavar="TEXT", help="What kind of file it is, such as text/csv.")


def _upload(session: Session, arguments: Namespace) -> Outcome:
    caller = session.caller
    caller.require(KeyScope.WRITE)
    service = UploadService.from_settings(caller.scope)
    path = Path(arguments.file)
    try:
        with path.open("rb") as file:
            digest = _digest(file)
            size = file.tell()
            conversation_id = session.conversation_id(arguments.conversation)
            upload = _resumed(service, conversation_id, size=size, digest=digest, name=path.name) or service.begin(
                conversation_id=conversation_id,
                byte_size=size,
                file_name=path.name,
                mime_type=arguments.mime_type,
                sha256=digest,
            )
            return Outcome(_send(service, upload, file))
    except OSError as refusal:
        raise Invalid(f"{path} cannot be read: {refusal.strerror or refusal}.", code="unreadable_file") from refusal


def _resumed(service: UploadService, conversation_id: int, *, size: int, digest: str, name: str) -> UploadRecord | None:
    """The upload of this very file that was begun before and not finished."""
    for upload in service.list_uploads(conversation_id=conversation_id):
        if (upload.byte_size, upload.sha256, upload.file_name) == (size, digest, name):
            return upload
    return None


def _send(service: UploadService, upload: UploadRecord, file: BinaryIO) -> LargeFileRecord:
    with progress_bar() as progress:
        task = progress.add_task("Uploading", total=upload.byte_size)
        while upload.missing:
            for offset in upload.missing:
                progress.update(task, completed=upload.chunks_received * upload.chunk_bytes)
                file.seek(offset)
                upload = service.put_chunk(
                    upload_id=upload.upload_id, offset=offset, content=file.read(upload.chunk_bytes)
                )
    return service.finish(upload_id=upload.upload_id)


def _digest(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _download_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file_id", metavar="ID", help="The file, as file_... .")
    parser.add_argument(
        "target", nargs="?", metavar="PATH", help="Where to; - for standard output. Default: its id, in this directory."
    )


def _download(session: Session, arguments: Namespace) -> Outcome | None:
    caller = session.caller
    caller.require(KeyScope.READ)
    # Its own name is not taken for a path: somebody else chose it.
    target = arguments.target or arguments.file_id
    found = LargeFileService.from_settings(caller.scope).stream(file_id=arguments.file_id)
    if target == "-":
        for piece in found.pieces():
            sys.stdout.buffer.write(piece)
        return None
    return Outcome(_written(found.record, found.pieces(), Path(target)))


def _written(record: LargeFileRecord, pieces: Iterator[bytes], path: Path) -> DownloadedFile:
    """Whole, or not there: the bytes come under another name first, and nothing that is there is overwritten."""
    digest, size = hashlib.sha256(), 0
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    try:
        if path.exists():
            raise Conflict(f"{path} is there already.")
        with unfinished.open("xb") as file:
            for piece in pieces:
                digest.update(piece)
                size += file.write(piece)
        if record.content_hash not in (None, digest.hexdigest()):
            raise Conflict(f"The bytes of {record.file_id} are not those that were stored.", code="damaged")
        unfinished.rename(path)
    except OSError as refusal:
        raise Invalid(f"{path} cannot be written: {refusal.strerror or refusal}.") from refusal
    finally:
        unfinished.unlink(missing_ok=True)
    return DownloadedFile(file_id=record.file_id, path=str(path), byte_size=size, sha256=digest.hexdigest())


VERBS = (
    Verb(
        "upload",
        "Store a file of any size; a second run goes on where the first stopped.",
        _upload_arguments,
        _upload,
        description=(
            "Store a file in chunks. If that is broken off, the same command goes on with what is missing, as long as "
            "the file is the same and the upload has not been given up (LCM_UPLOAD_HOURS)."
        ),
    ),
    Verb("download", "Write a file's bytes to a path, and check them.", _download_arguments, _download),
)
