"""Parse arguments, suggest spellings, and write completion scripts."""

from __future__ import annotations

import shutil
import textwrap
from argparse import SUPPRESS, Action, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, NoReturn

from conversations.errors import Invalid
from lcmsite.catalogue.operation import pieces
from lcmsite.cli.cli_session import DEFAULT_WORKSPACE
from lcmsite.cli.verbs import HELP, Verb


class Parser(ArgumentParser):
    """An argument parser that raises Invalid, with a suggestion, instead of exiting."""

    def __init__(self, **options: Any) -> None:
        self.actions: list[Action] = []
        super().__init__(**{"formatter_class": RawDescriptionHelpFormatter, **options})
        # Python 3.14 and later also suggest the nearest choice of an option.
        self.suggest_on_error = True

    def add_argument(self, *names: Any, **options: Any) -> Action:
        if "choices" in options:
            # Errors show the members of an enum by their representation.
            options["choices"] = [str(each) for each in options["choices"]]
        action = super().add_argument(*names, **options)
        self.actions.append(action)
        return action

    def error(self, message: str) -> NoReturn:
        sentence = f"{message[:1].upper()}{message[1:]}."
        if message.startswith("unrecognized arguments"):
            known = [name for action in self.actions for name in action.option_strings]
            options = [word.partition("=")[0] for word in message.split() if word.startswith("--")]
            places = [each for each in self.actions if f"--{each.dest.replace('_', '-')}" in options]
            names = " and ".join(str(each.metavar) for each in places if not each.option_strings)
            by_place = f" Give {names} by place, without a name." if names else ""
            hint = " A text that begins with - is written after `--`." if " -" in message else ""
            sentence += by_place or suggestion(options, known) or hint
        raise Invalid(f"{sentence} See `{self.prog} --help`.", code="usage")


def suggestion(words: Iterable[str], known: Iterable[str]) -> str:
    """` Did you mean X?` for the words that resemble a known one; empty if none does."""
    near = [match for word in words for match in get_close_matches(word, known, n=1)]
    return f" Did you mean {' '.join(near)}?" if near else ""


def parser_of(verb: Verb) -> Parser:
    """The parser of a verb's arguments."""
    example = f"example:\n  {HELP[verb.name].example}" if verb.name in HELP else ""
    family = _family_lines(verb.name)
    parser = Parser(
        prog=f"lcm {verb.name}",
        description=wrapped(verb.description or verb.sentence),
        epilog="\n".join([example, *(["", "more verbs:", *family] if family else [])]),
    )
    add_globals(parser)
    verb.add_arguments(parser)
    return parser


def parser_of_family(word: str) -> Parser | None:
    """The parser of a first word that several verbs share; None if none do."""
    lines = _family_lines(word)
    if not lines:
        return None
    lines += ["", f"`lcm {word} VERB --help` shows a verb's options and an example."]
    return Parser(prog=f"lcm {word}", usage=f"lcm {word} VERB ...", epilog="\n".join(["verbs:", *lines]))


def _family_lines(word: str) -> list[str]:
    family = {name: help.sentence for name, help in HELP.items() if name.startswith(f"{word} ")}
    width = max(map(len, family), default=0)
    return [f"  {name:<{width}}  {sentence}" for name, sentence in family.items()]


def add_globals(parser: ArgumentParser) -> None:
    """Add the options that may be given before or after every verb."""
    parser.add_argument("--json", action="store_true", default=SUPPRESS, help="Print JSON, as the REST API does.")
    parser.add_argument(
        "--workspace",
        metavar="NAME",
        default=SUPPRESS,
        help=f"The workspace to use (or set LCM_WORKSPACE). Default: {DEFAULT_WORKSPACE}.",
    )
    parser.add_argument(
        "--api-key",
        metavar="KEY",
        default=SUPPRESS,
        help="Act with this API key, in its workspace and with its scopes (or set LCM_API_KEY).",
    )


def wrapped(text: str) -> str:
    """The text with each paragraph and list item wrapped to the terminal's width."""
    width = shutil.get_terminal_size().columns - 2
    return "\n".join(textwrap.fill(" ".join(each.split()), width) for each in pieces(text))


def completion_script(shell: str, verbs: Iterable[Verb]) -> str:
    """The completion script of bash, zsh or fish for these verbs."""
    # Imported here: only this verb needs it.
    import shtab

    root = Parser(prog="lcm")
    add_globals(root)
    top = root.add_subparsers(metavar="VERB")
    families: dict[str, Any] = {}
    for verb in sorted(verbs, key=lambda each: each.name):
        first, _, second = verb.name.partition(" ")
        parent = top
        if second:
            if first not in families:
                known = top.choices.get(first)
                family = known if known is not None else top.add_parser(first, help=f"{first.capitalize()} verbs.")
                families[first] = family.add_subparsers(metavar="VERB")
            parent = families[first]
        parser = parent.add_parser(second or first, help=verb.sentence)
        add_globals(parser)
        verb.add_arguments(parser)
        for action in parser.actions:
            if action.metavar in {"FILE", "PATH", "ANCHOR"}:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    return str(shtab.complete(root, shell))
