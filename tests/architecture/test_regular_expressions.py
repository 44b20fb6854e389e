"""No regular expression of LCM gives other results on another Python, or takes longer than its text is long."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator

import pytest

from compaction.rendering import readable_source
from compaction.summarizing.output_checks import fault_in
from compaction.summarizing.retention_score import retention
from tests.architecture.house.sources import ROOMS, trees

# It serves a site when it is imported.
ENTRIES = ("lcmsite.wsgi",)

# What has a meaning of its own inside a pattern: escapes and sets of characters, where a plus is a plus.
_ESCAPES_AND_SETS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_POSSESSIVE = re.compile(r"[*+?}]\+|\(\?>")


def is_possessive(pattern: str) -> bool:
    """Whether there is a possessive quantifier or an atomic group in a pattern."""
    return _POSSESSIVE.search(_ESCAPES_AND_SETS.sub("x", pattern)) is not None


def compiled() -> Iterator[tuple[str, str]]:
    """The patterns that the modules keep, as they were put together, with where they are."""
    for room in ROOMS:
        package = importlib.import_module(room)
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if found.name in ENTRIES or found.name.endswith("__main__"):
                continue
            for name, value in vars(importlib.import_module(found.name)).items():
                if isinstance(value, re.Pattern):
                    text = value.pattern
                    yield f"{found.name}.{name}", text if isinstance(text, str) else text.decode("latin-1")


def written() -> Iterator[tuple[str, str]]:
    """The texts inside each call of the module `re`, with where they are."""
    for file, module in trees(holding="re."):
        for node in ast.walk(module):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[pattern, *_]):
                    for part in ast.walk(pattern):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            yield f"{file}:{part.lineno}", part.value


def test_no_pattern_has_a_possessive_quantifier_or_an_atomic_group():
    # CPython before 3.11.5 gets them wrong when they are nested, and LCM runs on every 3.11.
    patterns = [*compiled(), *written()]

    assert len(patterns) > 50
    assert [where for where, pattern in patterns if is_possessive(pattern)] == []


HOSTILE = {
    "blanks": " ",
    "tabs and lines": "\t\n",
    "bullets": "- ",
    "hashes": "#",
    "full stops": ". ",
    "quotes": "'\"",
    "nods": "ok, ",
    "an order half given": "ignore all ",
    "labels": "important: ",
    "words": "ab ",
    "capitals": "aA",
    "nearly long words": "x" * 59 + " ",
    "nearly base64": "A" * 61 + "\n",
}


@pytest.mark.thorough
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("end", ["", "1"], ids=["whole", "cut short"])
@pytest.mark.parametrize("read", [fault_in, readable_source, lambda text: retention([text], text)], ids=range(3))
def test_a_text_eight_times_as_long_does_not_take_much_more_than_eight_times_as_long_to_read(read, unit, end):
    short, long = (seconds(read, unit * (size // len(unit)) + end) for size in (1_500, 12_000))

    # What is read again from each of its characters takes 64 times as long.
    assert long < 30 * max(short, 0.0005)


def seconds(read: Callable[[str], object], text: str) -> float:
    """How long the processor works on this at the least; how busy the machine is does not matter."""
    taken = []
    for _ in range(3):
        began = time.process_time()
        read(text)
        taken.append(time.process_time() - began)
    return min(taken)
