"""The program `lcm`: find the verb, run it, and show its result or the problem."""

from __future__ import annotations

import logging
import sys
from argparse import REMAINDER, SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

from django.conf import settings
from django.core.checks import run_checks
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError, connections

from conversations.errors import Invalid, LcmError
from integrity.types import PlanState
from lcmsite.catalogue.json_text import as_ascii_json
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import EXIT_CODES, FINDINGS_EXIT_CODE, INTERNAL, INTERRUPTED_EXIT_CODE, problem_of
from lcmsite.cli import (
    access_verbs,
    ledger_verbs,
    map_verbs,
    operating_verbs,
    show_results,
    transfer_verbs,
)
from lcmsite.cli.all_workspaces import CHECKS, over_all_workspaces
from lcmsite.cli.catalogue_verbs import from_operation
from lcmsite.cli.cli_session import Session
from lcmsite.cli.terminal_layout import safe
from lcmsite.cli.verb_parser import Parser, add_globals, completion_script, parser_of, parser_of_family, suggestion
from lcmsite.cli.verbs import GROUPS, HELP, AddArguments, Verb, argument, verb
from lcmsite.connections import require_servers
from lcmsite.hosts import host_verbs
from lcmsite.importing import discovery_verbs

logger = logging.getLogger(__name__)

# Verbs that are Django commands, with arguments of their own.
MANAGEMENT = {name: HELP[name].sentence for name in ("up", "migrate")}
SHELLS = ("bash", "zsh", "fish")
# Verbs that serve until they are stopped. They log every request; other verbs show a result instead.
SERVERS = ("gateway", "mcp")


def run(given: list[str]) -> int:
    """Run one command line and return its exit status; problems go to stderr."""
    _escape_unencodable()
    # Looked up without parsing, because errors of the parser need it, too.
    wants_json = "--json" in given
    try:
        result, session = _perform(given)
        if wants_json and result is not None:
            sys.stdout.write(as_ascii_json(result) + "\n")
        elif result is not None:
            show_results.show(result, sys.stdout, workspace=lambda: session.caller.workspace().name)
        sys.stdout.flush()
        return FINDINGS_EXIT_CODE if _has_findings(result) else 0
    except BrokenPipeError:
        # The reader of our output has gone; the rest of the buffer must not be written at exit.
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except Exception as error:
        return _report(error, wants_json=wants_json)


def verbs() -> dict[str, Verb]:
    """Every verb by name, except Django's commands."""
    modules = (transfer_verbs, discovery_verbs, access_verbs, operating_verbs, ledger_verbs, map_verbs, host_verbs)
    local = [each for module in modules for each in vars(module).values() if isinstance(each, Verb)]
    known = {each.name: each for each in (*map(from_operation, CATALOGUE), *local, completion)}
    return known | {name: over_all_workspaces(known[name]) for name in CHECKS}


def _has_findings(result: Any) -> bool:
    """Whether the result reports findings or failures: the exit status is then 1."""
    listed = result if isinstance(result, list) else ()
    return (
        getattr(result, "is_clean", True) is False
        or any(getattr(each, "is_cut_off", False) for each in listed)
        or getattr(result, "is_complete", True) is False
        or getattr(result, "state", None) is PlanState.REFUSED
        or bool(getattr(result, "damaged_files", None))
    )


def _perform(given: list[str]) -> tuple[Any, Session]:
    """Run the verb; return its result, or None, and the session that it ran in."""
    top = _top_parser()
    options = vars(top.parse_args(given))
    words = [options.pop("verb"), *options.pop("rest")]
    if words[0] is None:
        top.print_help()
        return None, Session()
    if words[0] in MANAGEMENT:
        _manage(words[0], words[1:])
        return None, Session()
    if settings.CONFIGURATION_PROBLEMS:
        raise _misconfigured(f"{each.msg} {each.hint}" for each in settings.CONFIGURATION_PROBLEMS)
    found, rest = _split_verb(words)
    arguments = parser_of(found).parse_intermixed_args(rest)
    for name in ("json", "workspace", "api_key"):
        if name in arguments:
            options[name] = getattr(arguments, name)
            delattr(arguments, name)
    workspace = options.get("workspace") or settings.DEPLOYMENT.workspace
    session = Session(workspace, options.get("api_key") or settings.DEPLOYMENT.api_key)
    with _quiet() if found.name not in SERVERS else nullcontext():
        return found.run(session, arguments), session


@contextmanager
def _quiet() -> Iterator[None]:
    """Log only warnings and errors, unless the settings of the log were changed."""
    root = logging.getLogger()
    level = root.level
    if (settings.DEPLOYMENT.log_format, settings.DEPLOYMENT.log_level) == ("auto", "INFO"):
        root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.setLevel(level)


def _manage(name: str, rest: list[str]) -> None:
    """Run a Django command, with LCM's errors and exit codes."""
    command = load_command_class(get_commands()[name], name)
    try:
        parser = command.create_parser("lcm", name, epilog=f"Example: {HELP[name].example}")
        options = vars(parser.parse_args(rest))
        wrong = [check for check in run_checks() if check.is_serious() and not check.is_silenced()]
        if wrong:
            raise _misconfigured(f"{check.msg} {check.hint or ''}".strip() for check in wrong)
        if name == "migrate":
            # `up` calls this itself, after its checks that need no server.
            require_servers()
        command.execute(*options.pop("args", ()), **options | {"skip_checks": True})
    except CommandError as refusal:
        raise Invalid(str(refusal).removeprefix("Error: "), code="usage") from refusal
    finally:
        connections.close_all()


def _misconfigured(sentences: Iterable[str]) -> Invalid:
    return Invalid(" ".join(sentences), code="misconfigured")


def _split_verb(words: list[str]) -> tuple[Verb, list[str]]:
    """Split words into a verb and its arguments; raises Invalid for an unknown verb."""
    known = verbs()
    for length in (2, 1):
        found = known.get(" ".join(words[:length]))
        if found is not None:
            return found, words[length:]
    family = [name for name in known if name.startswith(f"{words[0]} ")]
    shared = parser_of_family(words[0])
    if shared is not None and words[1:2] in (["-h"], ["--help"]):
        shared.parse_args(["--help"])
    if family:
        near = suggestion([" ".join(words[:2])], family) if len(words) > 1 else ""
        raise Invalid(f"Choose one: {', '.join(f'`lcm {name}`' for name in family)}.{near}", code="usage")
    near = suggestion([words[0]], {name.split()[0] for name in (*known, *MANAGEMENT)})
    raise Invalid(f"There is no verb {words[0][:80]!r}.{near} `lcm --help` lists them.", code="usage")


def _top_parser() -> ArgumentParser:
    sentences = MANAGEMENT | {name: each.sentence for name, each in verbs().items()}
    width = max(map(len, sentences))
    lines = ["verbs:"]
    for group, names in (*GROUPS.items(), ("Other", [name for name in sentences if name not in HELP])):
        if names:
            lines += ["", f" {group}:", *(f"  {name:<{width}}  {sentences[name]}" for name in names)]
    lines += ["", "exit status:", *(f"  {code:<3} {meaning}" for code, meaning in EXIT_CODES.items())]
    lines += ["", "`lcm VERB --help` shows a verb's options and an example."]
    lines += ["A conversation is named by its number (7 or conv_7) or by its session (session:7 for the name 7)."]
    parser = Parser(
        prog="lcm",
        usage="lcm [--json] [--workspace NAME] [--api-key KEY] [--version] VERB ...",
        description="A memory for LLM agents that never loses a word.",
        epilog="\n".join(lines),
    )
    add_globals(parser)
    version = f"lcm {settings.SPECTACULAR_SETTINGS['VERSION']}"
    parser.add_argument("--version", action="version", version=version, help="Print the version of LCM.")
    parser.add_argument("verb", nargs="?", help=SUPPRESS)
    parser.add_argument("rest", nargs=REMAINDER, help=SUPPRESS)
    return parser


@verb("completion", argument("shell", choices=SHELLS, help="The shell to write the script for."))
def completion(session: Session, arguments: Namespace) -> None:
    """Print the completion script of a shell.

    In bash, write it to ~/.local/share/bash-completion/completions/lcm; in zsh, to a file _lcm in a directory of
    $fpath; in fish, to ~/.config/fish/completions/lcm.fish. Write it again after an upgrade.
    """
    sys.stdout.write(completion_script(arguments.shell, [*_management_verbs(), *verbs().values()]))


def _management_verbs() -> Iterable[Verb]:
    """Django's commands as verbs, so that their options are completed too."""
    for name in MANAGEMENT:
        command = load_command_class(get_commands()[name], name)
        # Cast, as Django annotates the parser with a subclass of its own.
        yield Verb(name, lambda session, arguments: None, cast("AddArguments", command.add_arguments))


def _escape_unencodable() -> None:
    """Print characters that the terminal cannot encode as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _report(error: Exception, *, wants_json: bool) -> int:
    problem = problem_of(_name_unavailable_server(error))
    if problem is INTERNAL:
        logger.error("The command failed.", exc_info=error)
    in_json = wants_json or settings.LOGS_ONLY_JSON
    line = as_ascii_json(problem.as_json()) if in_json else f"lcm: {problem.detail} [{problem.code}]"
    sys.stderr.write(safe(" ".join(line.splitlines())) + "\n")
    return problem.exit_code


def _name_unavailable_server(error: Exception) -> Exception:
    """Replace the error of an unavailable database by one that names the database."""
    if isinstance(error, OperationalError | InterfaceError):
        try:
            require_servers(with_our_own=True)
        except LcmError as refusal:
            return refusal
    return error
