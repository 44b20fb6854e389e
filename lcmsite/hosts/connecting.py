"""Plan, show, make and undo the changes of files that connect a host."""

from __future__ import annotations

import base64
import difflib
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conversations.errors import Conflict, Invalid
from lcmsite.hosts import host_state
from lcmsite.hosts.agent_host import FilePlan, Host, Place
from lcmsite.hosts.file_edits import Edit, JsonElement, Taken, TextBlock, as_plain, from_plain, is_empty

# Appended to a host's instruction file (CLAUDE.md, AGENTS.md).
_MENTION = """\
## Memory

LCM keeps every word of every session here, also of those that were compacted. The tools `lcm_grep`, `lcm_expand` and
`lcm_timeline` find and open what was said earlier."""
_SHOWN_OF_KEYS = 8
_WRITTEN = "written.json"


@dataclass(frozen=True)
class FileChange:
    """A file of a host before and after a change; None if there is no file."""

    path: str
    before: bytes | None
    after: bytes | None
    # The edits made, and the file as it was before LCM first changed it.
    edits: tuple[Edit, ...] = ()
    original: bytes | None = None
    is_original_known: bool = True
    # Entries of LCM that disconnecting leaves in the file, because they were changed since.
    left: tuple[str, ...] = ()
    # The mode to write the file with; None keeps its current mode.
    mode: int | None = None

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def diff(self, secret: str) -> str:
        """Return the change as a unified diff, with `secret` shortened."""
        both = (self.before, self.after)
        before, after = (io.StringIO((text or b"").decode("utf-8", "replace"), newline="\n") for text in both)
        old, new = (self.path if text is not None else "/dev/null" for text in both)
        lines = difflib.unified_diff(list(before), list(after), old, new)
        text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
        return text.replace(secret, f"{secret[:_SHOWN_OF_KEYS]}…") if secret else text


def _written(host: Host) -> dict[str, dict[str, Any]]:
    """Return the record of what LCM wrote into the files of a host, by their paths."""
    return {row["path"]: row for row in host_state.read(host.name, _WRITTEN).get("files", [])}


def changes_for(host: Host, place: Place) -> list[FileChange]:
    """Plan the changes for connecting. Raises Conflict if an entry exists already."""
    written = _written(host)
    plans = host.files(place)
    if place.is_mentioned and host.instructions:
        plans.append(FilePlan(host.own_folder(place) / host.instructions, [TextBlock(_MENTION, comment="<!--")]))
    return [_change(plan, written.get(str(plan.path), {}), key=place.api_key) for plan in plans]


def _change(plan: FilePlan, row: dict[str, Any], *, key: str) -> FileChange:
    path, planned = str(plan.path), plan.edits
    before = _bytes_of(path)
    text = _text(path, before)
    recorded = _recorded(row)
    try:
        if recorded and before is not None and all(edit.is_in(text) for edit in planned):
            return FileChange(path, before, before, recorded)
        after = _undone(text, recorded, with_changed=True)
        edits: list[Edit] = []
        for edit in planned:
            edits.append(edit.placed(after))
            # An edit that the file already contains (its record may have been lost) is only recorded.
            after = after if edit.is_in(after) else edits[-1].apply(after)
    except Taken as wrong:
        raise Conflict(f"{path} is left as it is: {wrong}.", code="entry_exists") from wrong
    except ValueError as wrong:
        raise Invalid(f"{path} cannot be changed: {wrong}.", code="unreadable_file") from wrong
    # A file that already contains LCM's entries is not the original to restore.
    is_known = _undone(text, edits) == text
    original = before if is_known else None
    if row:
        is_known = before is not None and _digest(before) == row["sha256"] and row["is_original_known"]
        original = _original(row)
    mode = host_state.OWNER_ALONE if key in after else None
    return FileChange(path, before, after.encode(), tuple(edits), original, is_known, mode=mode)


def undoing(host: Host) -> list[FileChange]:
    """Plan the changes for disconnecting: restore each file, or remove LCM's edits."""
    return [_undo(row) for row in _written(host).values()]


def _undo(row: dict[str, Any]) -> FileChange:
    before, original = _bytes_of(row["path"]), _original(row)
    if before is None:
        return FileChange(row["path"], None, None)
    if row["is_original_known"] and _digest(before) == row["sha256"]:
        return FileChange(row["path"], before, original, mode=row.get("mode"))
    try:
        edits = _recorded(row)
        after = _undone(_text(row["path"], before), edits)
        left = tuple(name for name in (edit.left_in(after) for edit in edits) if name)
    except ValueError as wrong:
        raise Invalid(
            f"{row['path']} cannot be changed: {wrong}. Remove by hand what `lcm connect` wrote there.",
            code="unreadable_file",
        ) from wrong
    is_gone = original is None and is_empty(after)
    return FileChange(row["path"], before, None if is_gone else after.encode(), left=left, mode=row.get("mode"))


def make(host: Host, changes: Sequence[FileChange]) -> None:
    """Write the files, each atomically, and record what was written.

    Raises Conflict if a file has changed since the change was planned.
    """
    written = _written(host)
    for change in changes:
        if not change.is_change and change.path in written:
            continue
        _require_unchanged(change)
        assert change.after is not None
        earlier = written.pop(change.path, {})
        written[change.path] = {
            "path": change.path,
            "original": None if change.original is None else base64.b64encode(change.original).decode(),
            "is_original_known": change.is_original_known,
            "sha256": _digest(change.after),
            "edits": [as_plain(edit) for edit in change.edits],
            "mode": earlier.get("mode") or _mode_of(Path(change.path)),
            "made": earlier.get("made") or _missing_folders(change.path),
        }
        # Record the edits before writing them: undoing an edit that was recorded but not written does no harm.
        host_state.write(host.name, _WRITTEN, {"files": list(written.values())})
        if change.is_change:
            _replace(change.path, change.after, change.mode)


def unmake(host: Host, changes: Sequence[FileChange]) -> None:
    """Write the files without LCM's edits, and remove the host's state.

    Records of files with entries left in them are kept. Raises Conflict as `make` does, before any state is removed.
    """
    written = _written(host)
    for change in changes:
        if not change.is_change:
            continue
        _require_unchanged(change)
        if change.after is not None:
            _replace(change.path, change.after, change.mode)
        else:
            # Follow a symbolic link, as when writing.
            Path(change.path).resolve().unlink()
    made = {Path(folder) for row in written.values() for folder in row["made"]}
    for folder in sorted(made, key=lambda each: len(each.parts), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    left = [written[change.path] for change in changes if change.left and change.path in written]
    if left:
        host_state.write(host.name, _WRITTEN, {"files": left})
        host_state.forget(host.name, "connection.json")
        host_state.forget(host.name, "activity.json")
    else:
        host_state.forget_host(host.name)


def _require_unchanged(change: FileChange) -> None:
    # A running host may write these files, too.
    if _bytes_of(change.path) != change.before:
        raise Conflict(f"{change.path} was changed while this command ran; run the command again.")


def _undone(text: str, edits: Sequence[Edit], *, with_changed: bool = False) -> str:
    for edit in reversed(edits):
        text = edit.undo_changed(text) if with_changed and isinstance(edit, JsonElement) else edit.undo(text)
    return text


def _original(row: dict[str, Any]) -> bytes | None:
    """Return the file as it was before LCM first changed it; None if there was none."""
    return None if row["original"] is None else base64.b64decode(row["original"])


def _recorded(row: dict[str, Any]) -> tuple[Edit, ...]:
    return tuple(from_plain(each) for each in row.get("edits", []))


def _bytes_of(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as refusal:
        raise Invalid(f"{path} cannot be read: {refusal.strerror}.", code="unreadable_file") from refusal


def _text(path: str, found: bytes | None) -> str:
    try:
        return (found or b"").decode()
    except UnicodeDecodeError as wrong:
        raise Invalid(f"{path} cannot be changed: it is not UTF-8.", code="unreadable_file") from wrong


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _missing_folders(path: str) -> list[str]:
    """Return the folders above a file that do not exist yet, innermost first."""
    parents = Path(path).resolve().parents
    return [str(folder) for folder in parents if not folder.exists()]


def _mode_of(path: Path) -> int | None:
    """The mode of a file; None if it is not there."""
    return path.stat().st_mode & 0o777 if path.exists() else None


def _replace(path: str, content: bytes, mode: int | None) -> None:
    # Follow a symbolic link, as dotfile managers use them.
    real = Path(path).resolve()
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        # A file that LCM creates may hold a key.
        host_state.replace(real, content, mode=mode or _mode_of(real) or host_state.OWNER_ALONE)
    except OSError as refusal:
        raise Invalid(f"{path} cannot be written: {refusal.strerror}.", code="unreadable_file") from refusal
