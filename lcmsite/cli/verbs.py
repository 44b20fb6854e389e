"""Verbs of the command line: declaration, help texts and shared helpers."""

from __future__ import annotations

import inspect
import sys
import tomllib
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Any, NamedTuple, cast

from rich.console import Console

from conversations.errors import Conflict, Invalid
from lcmsite.catalogue.operation import with_error_codes
from lcmsite.cli.cli_session import Session

STDIO = "-"

Run = Callable[[Session, Namespace], Any]
AddArguments = Callable[[ArgumentParser], object]


class Help(NamedTuple):
    """A verb's line in `lcm --help`, and its example in `lcm VERB --help`."""

    sentence: str
    example: str


GROUPS: dict[str, dict[str, Help]] = {
    group: {name: Help(*texts) for name, texts in verbs.items()}
    for group, verbs in tomllib.loads(Path(__file__).with_name("verbs.toml").read_text("utf-8")).items()
}
HELP = {name: help for verbs in GROUPS.values() for name, help in verbs.items()}


@dataclass(frozen=True)
class Verb:
    """A command of one or two words after `lcm`, with its arguments and function.

    `run` returns the result to show, or None if there is nothing to show.
    """

    name: str
    run: Run
    add_arguments: AddArguments
    description: str = ""

    @property
    def sentence(self) -> str:
        """The line of `lcm --help`."""
        return HELP[self.name].sentence if self.name in HELP else self.description.partition("\n")[0]


def argument(*names: str, **options: Any) -> AddArguments:
    """Declare an argument of a verb, with argparse's options."""
    return lambda parser: parser.add_argument(*names, **options)


OUTPUT = argument("-o", "--output", metavar="FILE", default=STDIO, help="The file to write. Default: standard output.")


def verb(
    name: str, *arguments: AddArguments, for_operator: bool = False, description: str | None = None
) -> Callable[[Run], Verb]:
    """Decorate a function as a verb, described by its docstring by default."""

    def add_arguments(parser: ArgumentParser) -> None:
        for add in arguments:
            add(parser)

    def decorate(function: Run) -> Verb:
        def run(session: Session, given: Namespace) -> Any:
            if for_operator:
                session.require_operator()
            return function(session, given)

        return Verb(name, run, add_arguments, with_error_codes(description or inspect.getdoc(function) or ""))

    return decorate


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show `words` as a status on a terminal while the block runs."""
    with Console(stderr=True).status(words) if sys.stderr.isatty() else nullcontext():
        yield


@contextmanager
def opened(path: Path | str, mode: str = "rb") -> Iterator[BufferedRandom]:
    """Open a local file, or standard input or output for the text "-".

    Raises Invalid, or Conflict if a new file exists already.
    """
    if path == STDIO:
        sys.stdout.flush()
        yield cast("BufferedRandom", sys.stdin.buffer if mode == "rb" else sys.stdout.buffer)
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open(mode))
        except FileExistsError as refusal:
            raise Conflict(f"{path} already exists; choose another path.", code="file_exists") from refusal
        except (OSError, ValueError) as refusal:
            raise unusable(path, refusal, "read" if mode == "rb" else "written") from refusal
        yield cast("BufferedRandom", file)


def unusable(path: Path | str, refusal: Exception, done: str) -> Invalid:
    """The error for a local file that cannot be `done`: read or written."""
    why = getattr(refusal, "strerror", None) or refusal
    return Invalid(f"{path} cannot be {done}: {why}.", code="unreadable_file")


def write_bytes(target: str, content: bytes) -> None:
    """Write to a new file, or to standard output for `-`."""
    with opened(target, "xb") as file:
        file.write(content)
