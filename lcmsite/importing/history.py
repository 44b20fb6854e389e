"""Read a history from a file, message by message, in any of the known formats.

The file is JSON Lines, in which each line is a message or an object with `messages`; or one JSON value, a list of these
or one object; or the transcript of an agent, recognized by its lines; or a document of another program (`DOCUMENTS`).
It may be compressed, or the zip archive of an export.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from conversations.content import hashing
from conversations.content.flattening import content_of
from conversations.content.lossless_values import is_name
from conversations.errors import Invalid
from conversations.formats import READERS, Format, Transcript, detect, project_of, read_message, transcript_of
from conversations.formats.claude_code import is_queued
from conversations.formats.documents import DOCUMENTS, aider, document_of, gemini
from conversations.formats.documents.sessions import HostSession, name_of
from lcmsite.catalogue import json_text
from lcmsite.importing import opencode_database
from lcmsite.importing.entries import Entry, Prompt, Prompts, key_at
from lcmsite.importing.plugin_sessions import PREFIXES
from lcmsite.importing.side_files import with_outputs
from lcmsite.importing.zstandard_file import ZstandardFile

_GZIP, _ZSTANDARD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
# Maximum size of a file in a zip archive: it is read into memory.
MOST_UNZIPPED_BYTES = 4 * 1024**3
UNFINISHED = "unfinished last line"
# Raised for values of another type or form than the program writes.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
KNOWN_FORMATS = (
    f"LCM reads messages as JSON ({', '.join(READERS)}), transcripts of Claude Code, Codex and pi, and files of "
    f"{', '.join(each.name for each in DOCUMENTS)} and aider."
)


@dataclass
class History:
    """A file of messages, to be read once. An empty `format` is detected.

    `session`, if given, is the session of all messages.
    """

    path: Path
    session: str = ""
    format: str = ""
    # How many lines of a transcript had no message, by type.
    passed_over: Counter[str] = field(default_factory=Counter)
    # The numbers of the lines of a transcript that are not JSON, as a killed program leaves them.
    broken_lines: list[int] = field(default_factory=list)
    # Why conversations in a list of documents were left out.
    refused: list[str] = field(default_factory=list)
    # The session and parent for lines of a transcript that name none; an earlier line has named them.
    _named: str = field(default="", repr=False)
    _parent: str = field(default="", repr=False)
    # The same for the project.
    _project: str = field(default="", repr=False)
    # By line id: the key and turn of the message on this line, or of the one that the line follows.
    _messages: dict[str, tuple[str, int]] = field(default_factory=lambda: {"": ("", 0)}, repr=False)
    # The ids of the lines of the file so far.
    _line_ids: set[str] = field(default_factory=set, repr=False)
    # How many lines so far may begin a branch; by session, the key of the newest message.
    _turns: int = field(default=0, repr=False)
    _newest: dict[str, str] = field(default_factory=dict, repr=False)
    _prompts: Prompts = field(default_factory=Prompts, repr=False)
    # The titles in a transcript, each with its session and the id of a line of that session, or "".
    _titles: list[tuple[str, str, str]] = field(default_factory=list, repr=False)
    # Lines of a transcript since its last message.
    _lines_behind: list[Mapping[str, Any]] = field(default_factory=list, repr=False)
    # The session of the first message of a transcript.
    _file_session_id: str = field(default="", repr=False)
    # Whether any message was recognized.
    _is_known: bool = field(default=False, repr=False)
    # Opens the file; the command line passes one that shows progress.
    opener: Callable[[Path], BinaryIO] = lambda path: path.open("rb")

    def entries(self) -> Iterator[Entry]:
        """Yield the messages in order. Raises Invalid, naming the line, if one is bad."""
        try:
            with self.opener(self.path) as file:
                begin = file.read(len(opencode_database.MAGIC))
                file.seek(0)
                if begin == opencode_database.MAGIC:
                    for value in opencode_database.sessions_in(self.path, self.refused):
                        yield from self._one_of_several(f"session {value['info'].get('id')}", value, self.stem)
                elif begin.startswith(_GZIP):
                    yield from self._read(gzip.GzipFile(fileobj=file))
                elif begin.startswith(_ZSTANDARD):
                    yield from self._read(io.BufferedReader(ZstandardFile(file)))
                elif begin.startswith(_ZIP):
                    yield from self._unzipped(file)
                else:
                    yield from self._read(file)
        except (OSError, *_UNREADABLE) as refusal:
            why = getattr(refusal, "strerror", None) or refusal
            raise Invalid(f"{self.path} cannot be read: {why}.", code="unreadable_file") from refusal

    def _unzipped(self, file: BinaryIO) -> Iterator[Entry]:
        """Yield the messages of an export of ChatGPT or Claude.ai, as it is downloaded."""
        try:
            with zipfile.ZipFile(file) as archive:
                found = [each for each in archive.infolist() if Path(each.filename).match("conversations*.json")]
                if not found:
                    raise self._malformed("", "This zip has no conversations.json. Unzip it, and import its files.")
                if sum(each.file_size for each in found) > MOST_UNZIPPED_BYTES:
                    raise self._malformed("", f"conversations.json has more than {MOST_UNZIPPED_BYTES:,} bytes.")
                if any(each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for each in found):
                    raise self._malformed("", "LCM reads only deflated or stored files of a zip. Unzip it first.")
                for each in found:
                    with archive.open(each) as member:
                        yield from self._read(member)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as broken:
            raise self._malformed("", f"The zip cannot be read: {broken}. Download it again.") from broken

    def _read(self, file: Iterable[bytes]) -> Iterator[Entry]:
        stream = self._lines(file)
        lines = (each for each in stream if each[1].strip())
        begin, first = next(lines, (1, b""))
        opening = first.strip()
        if not opening:
            raise self._malformed("line 1", "The file is empty.")
        if first.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            raise self._malformed("line 1", "The file is in UTF-16. Convert it to UTF-8, such as with iconv.")
        if opening.startswith(b"[") or opening == b"{":
            value = self._value("", b"".join([first, *(line for _, line in lines)]))
            if not isinstance(value, list):
                yield from self._one("", value, self.stem)
                return
            for place, each in enumerate(value, start=1):
                yield from self._one_of_several(f"item {place}", each, f"{self.stem}-{place}")
            return
        if aider.is_start(opening.decode(errors="replace")):
            texts = (self._text(number, line) for number, line in chain([(begin, first)], stream))
            yield from self._of_sessions("", aider.sessions_of(texts, self.path.resolve()))
            return
        values = self._values(chain([(begin, first)], lines))
        begin, head = next(values)
        if isinstance(head, dict) and head.get("format") == "lcm-ledger":
            raise self._malformed(f"line {begin}", "This is a ledger: use `lcm ledger import`.")
        if gemini.is_head(head):
            yield from self._one("", gemini.built(chain([head], (each for _, each in values))), self.stem)
            return
        for number, value in chain([(begin, head)], values):
            yield from self._one(f"line {number}", value, f"{self.stem}-{number}")

    def _values(self, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, Any]]:
        """Yield each line's value.

        A last line that is still being written is skipped, and so are broken lines of a transcript.
        """
        is_transcript = False
        for place, (number, line) in enumerate(lines):
            try:
                value = self._value(f"line {number}", line)
            except Invalid:
                # The program that writes the file ends each line with a newline.
                if place and not line.endswith(b"\n") and line.lstrip().startswith(b"{"):
                    self.passed_over[UNFINISHED] += 1
                elif is_transcript and _is_broken(line):
                    self.broken_lines.append(number)
                else:
                    raise
            else:
                is_transcript = is_transcript or gemini.is_head(value) or transcript_of(value) is not None
                yield number, value

    def _lines(self, stream: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the lines, numbered from 1, without a byte order mark."""
        number = 0
        try:
            for number, line in enumerate(stream, start=1):
                yield number, line.removeprefix(BOM_UTF8) if number == 1 else line
        except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as broken:
            sentence = "The compressed file is damaged or incomplete from here on. Copy or download it again."
            raise self._malformed(f"line {number + 1}", sentence) from broken

    def _text(self, number: int, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError as wrong:
            raise self._malformed(f"line {number}", f"Byte {wrong.start + 1} is not UTF-8.") from wrong

    def _one_of_several(self, where: str, value: Any, session: str) -> Iterator[Entry]:
        """Yield the messages in a value; a malformed document goes to `refused`."""
        try:
            yield from self._one(where, value, session)
        except Invalid as wrong:
            if document_of(value) is None:
                raise
            self.refused.append(wrong.detail)

    def _one(self, where: str, value: Any, session: str) -> Iterator[Entry]:
        """Yield the message or messages in a value.

        The messages of an object belong to the session that it names. If it names none, they belong to `session`.
        """
        if document := document_of(value):
            sessions = document.sessions_of(value, self.path.resolve())
            program = document.name if document.name in PREFIXES and not self.session else ""
            yield from self._of_sessions(
                where, sessions, whole=value if document.is_finished else None, program=program
            )
        elif isinstance(value, dict) and isinstance(value.get("messages"), list) and "role" not in value:
            named = value.get("session_id")
            for place, row in enumerate(value["messages"], start=1):
                inner = f"{where}, message {place}".lstrip(", ")
                yield self._entry(inner, row, named if named and isinstance(named, str) else session)
        elif transcript := transcript_of(value):
            yield from self._of_transcript(where or "line 1", value, transcript)
        else:
            yield self._entry(where or "line 1", value, self.stem)

    def _of_sessions(
        self, where: str, sessions: Iterator[HostSession], *, whole: Any = None, program: str = ""
    ) -> Iterator[Entry]:
        try:
            for session in sessions:
                self._is_known = True
                self.passed_over.update(session.passed_over)
                if whole is not None:
                    self._lines_behind.append(whole)
                yield from self._of_session(where, session, whole is not None, program)
        except _UNREADABLE as wrong:
            raise self._malformed(where, str(wrong)) from wrong

    def _of_session(self, where: str, session: HostSession, is_whole: bool, program: str) -> Iterator[Entry]:
        session_id = self.session or session.session_id
        keys = {"": "", **{each.id: key_at(session_id, "id", each.id) for each in session.messages if each.id}}
        for place, each in enumerate(session.messages, start=1):
            inner = f"{where}, message {place}".lstrip(", ")
            yield Entry(
                inner,
                session_id,
                replace(each.message, idempotency_key=keys[each.id]) if each.id else each.message,
                key=keys[each.id] if each.id else key_at(session_id, inner, each.row),
                title=session.title if is_name(session.title) else "",
                project=session.project if is_name(session.project) else "",
                parent_session_id="" if self.session else session.parent_session_id,
                after=None if each.after is None else keys[each.after],
                head=keys[session.head],
                lines=self.take_lines(),
                file_session_id=session_id if is_whole else "",
                program=program,
                row=each.row,
            )

    def _of_transcript(self, where: str, line: dict[str, Any], transcript: Transcript) -> Iterator[Entry]:
        self._is_known = True
        named = transcript.session_of(line)
        project = project_of(line)
        try:
            message = transcript.message_of(line)
        except ValueError as wrong:
            raise self._malformed(where, str(wrong)) from wrong
        self._lines_behind.append(line)
        if message is None:
            if title := transcript.title_of(line):
                self._titles.append((self.session or named, *title))
            # The first name counts: a session that continues another may repeat lines of the other.
            if named and not self._named:
                self._named, self._parent = named, transcript.parent_of(line)
            self._project = self._project or project
        session_id = self.session or named or self._named or self.stem
        newest = self._newest.get(session_id, "")
        place = transcript.place_of(line)
        if place:
            self._line_ids.add(place[0])
        # A line id that is named as a predecessor before it is known counts as being at this position.
        followed, turn = self._messages.setdefault(place[1] if place else "", (newest, self._turns))
        if message is None:
            self.passed_over[line["type"]] += 1
            if place:
                self._messages[place[0]] = (followed, turn)
            return
        folder = self.path.parent
        message = with_outputs(message, folder.parent if folder.name == "subagents" else folder / self.stem)
        key = key_at(session_id, where, line)
        after, repeats = None, ""
        if place:
            may_branch = transcript.may_branch(line)
            # The line begins a branch only if there is at least one whole turn between it and the message it follows.
            after = followed if may_branch and followed != newest and turn < self._turns else None
            ids = [(session_id, each) for each in transcript.prompt_ids(line)]
            prompt = Prompt(key, hashing.content_hash(content_of(message)), is_queued(line)) if ids else None
            if after is not None:
                self._prompts.go_back(turn)
            elif prompt:
                repeats = self._prompts.repeated_by(prompt, ids)
            self._turns += may_branch and not repeats
            self._messages[place[0]] = (followed, turn) if repeats else (key, self._turns)
            if prompt:
                self._prompts.add(prompt._replace(key=repeats or key), ids, turn=self._turns)
        if not repeats:
            self._newest[session_id] = key
        self._file_session_id = self._file_session_id or session_id
        # If all messages go into one given session, it has no parent.
        parent = "" if self.session else transcript.parent_of(line) if named else self._parent
        yield Entry(
            where,
            session_id,
            message,
            key,
            project=project or self._project,
            parent_session_id=parent,
            after=after,
            before=followed if place else newest,
            repeats=repeats,
            lines=self.take_lines(),
            file_session_id=self._file_session_id,
            program=transcript.name if transcript.name in PREFIXES and not self.session else "",
            row=line,
        )

    def titles(self) -> dict[str, str]:
        """Return the last title of each session in a transcript that was read."""
        return {
            session_id or self._file_session_id: title
            for session_id, title, line_id in self._titles
            if is_name(title) and (not line_id or line_id in self._line_ids)
        }

    def take_lines(self) -> tuple[Mapping[str, Any], ...]:
        """Return the lines since the last message, and clear them."""
        lines = tuple(self._lines_behind)
        self._lines_behind.clear()
        return lines

    def _entry(self, where: str, row: Any, session: str) -> Entry:
        try:
            # Detect the format once, from the first distinctive message: later ones may look like another format.
            self.format = self.format or detect(row) or ""
            if not isinstance(row, dict):
                raise ValueError("A message must be an object.")
            message = read_message(row, Format(self.format or Format.OPENAI_CHAT))
            self._is_known = True
        except ValueError as wrong:
            raise self._malformed(where, str(wrong)) from wrong
        named = row.get("session_id")
        session_id = self.session or (named if isinstance(named, str) and named else session)
        return Entry(where, session_id, message, key=message.idempotency_key or key_at(session_id, where, row))

    def _value(self, where: str, text: bytes) -> Any:
        try:
            return json_text.parse(text)
        except Invalid as wrong:
            raise self._malformed(where, wrong.detail) from wrong

    @property
    def stem(self) -> str:
        """The file's name without its suffixes."""
        return name_of(self.path)

    def _malformed(self, where: str, sentence: str) -> Invalid:
        known = "" if self._is_known else f" {KNOWN_FORMATS}"
        return Invalid(f"{self.path.name}{', ' if where else ''}{where}: {sentence}{known}", code="malformed_history")


def _is_broken(line: bytes) -> bool:
    """Whether a line is no JSON at all, and not JSON that LCM refuses."""
    try:
        json.loads(line)
    except (RecursionError, ValueError) as wrong:
        return isinstance(wrong, json.JSONDecodeError | UnicodeDecodeError)
    return False
