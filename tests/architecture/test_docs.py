"""The documents say what is: settings, commands, links and paths in them are compared with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lcmsite.environment import variables

PROJECT = Path(__file__).resolve().parent.parent.parent
README = PROJECT / "README.md"
DOCUMENTS = sorted([README, *PROJECT.glob("*/README.md")])

_LINK = re.compile(r"\[[^\]]+\]\((?!https?:|#)([^)#]+)\)")
_PATH = re.compile(r"`((?:conversations|compaction|retrieval|integrity|lcmsite|tests|templates)/[\w/.]+\.\w+)`")


def settings_table() -> str:
    """The table of settings as README must have it."""
    lines = ["| name | default | what it is |", "|---|---|---|"]
    for variable in variables().values():
        low, high = variable.knob.metadata["low"], variable.knob.metadata["high"]
        bounds = "" if low is None and high is None else f" ({low:,} to {high:,})"
        star = "\\*" if variable.knob.metadata.get("per_conversation") else ""
        default = "" if variable.default in ("", None) else f"`{variable.default}`"
        lines.append(f"| `{variable.name}`{star} | {default} | {variable.knob.metadata['help']}{bounds} |")
    return "\n".join(lines)


def test_readme_lists_every_setting_with_its_default_and_bounds():
    found = re.search(r"<!-- settings -->\n(.*?)\n?<!-- /settings -->", README.read_text(), re.S)

    assert found is not None
    assert found[1] == settings_table(), f"README's table should be:\n{settings_table()}"


def test_every_make_target_in_readme_exists():
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.M))

    named = set(re.findall(r"^    make ([a-z]+)", README.read_text(), re.M))

    assert named == {"run", "test", "check", "bench", "eval", "lock"}
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_links_and_paths_lead_somewhere(document: Path):
    text = document.read_text()

    missing = [link for link in _LINK.findall(text) if not (document.parent / link).exists()]
    missing += [path for path in _PATH.findall(text) if not (PROJECT / path).exists()]

    assert not missing


def test_every_room_has_a_readme():
    rooms = [path.parent for path in PROJECT.glob("*/apps.py") if path.parent.name != "lcmsite"]

    assert len(rooms) == 4
    assert not [room.name for room in rooms if not (room / "README.md").exists()]
