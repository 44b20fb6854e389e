"""The program: finds the verb, lets it run, and shows the outcome or the problem."""

from __future__ import annotations

import logging
import sys
from argparse import REMAINDER, SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.core.checks import run_checks
from django.core.management import get_commands, load_command_class
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError, connections

from conversations.errors import Invalid, LcmError
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import EXIT_CODES, INTERNAL, INTERRUPTED_EXIT_CODE, problem_of
from lcmsite.catalogue.results import as_json
from lcmsite.cli import (
    administration,
    agent_verbs,
    anchor_verbs,
    backup_verbs,
    import_verbs,
    ledger_verbs,
    show_results,
    upload_verbs,
    user_verbs,
)
from lcmsite.cli.catalogue_verbs import Outcome, Parser, Verb, from_operation
from lcmsite.cli.cli_session import DEFAULT_WORKSPACE, Session
from lcmsite.servers import require_servers

logger = logging.getLogger(__name__)

# Verbs that are Django's own commands, with arguments of their own.
MANAGEMENT = {
    "up": "Run LCM: database, web server and workers, until Ctrl-C.",
    "migrate": "Bring the database's tables up to date.",
}


def run(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say; a problem is told on stderr, in one line or as JSON, and by the exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    _survive_any_text()
    # Asked of the bare arguments, for it must be known too when they cannot be understood.
    wants_json = "--json" in given
    try:
        outcome = _perform(given)
        if outcome is not None:
            _show(outcome.result, wants_json=wants_json)
        sys.stdout.flush()
        return outcome.exit_code if outcome else 0
    except BrokenPipeError:
        # Whoever read our output has read enough; what is left in the buffer must not be written at exit.
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except Exception as error:
        return _report(error, wants_json=wants_json)


def verbs() -> dict[str, Verb]:
    """Every verb by name."""
    ours = (
        *(from_operation(each) for each in CATALOGUE),
        import_verbs.VERB,
        agent_verbs.VERB,
        *administration.VERBS,
        *user_verbs.VERBS,
        *backup_verbs.VERBS,
        *ledger_verbs.VERBS,
        *anchor_verbs.VERBS,
        *upload_verbs.VERBS,
    )
    return {verb.name: verb for verb in ours}


def parser_of(verb: Verb) -> Parser:
    """What reads the words behind this verb."""
    parser = Parser(prog=f"lcm {verb.name}", description=verb.description or verb.summary)
    _add_globals(parser)
    verb.add_arguments(parser)
    return parser


def _perform(given: list[str]) -> Outcome | None:
    top = _top_parser()
    options = vars(top.parse_args(given))
    words = [options.pop("verb"), *options.pop("rest")]
    if words[0] is None:
        top.print_help()
        return None
    if words[0] in MANAGEMENT:
        _manage(words[0], words[1:])
        return None
    if settings.CONFIGURATION_PROBLEMS:
        raise _misconfigured(f"{each.detail} {each.hint}" for each in settings.CONFIGURATION_PROBLEMS)
    verb, rest = _found(words)
    arguments = parser_of(verb).parse_intermixed_args(rest)
    for name in ("json", "workspace", "api_key"):
        if name in arguments:
            options[name] = getattr(arguments, name)
            delattr(arguments, name)
    return verb.run(_session(options), arguments)


def _manage(name: str, rest: list[str]) -> None:
    """Run a command of Django's, which here refuses in LCM's way: Django's own would print, and end with 1."""
    command = load_command_class(get_commands()[name], name)
    try:
        options = vars(command.create_parser("lcm", name).parse_args(rest))
        wrong = [check for check in run_checks() if check.is_serious() and not check.is_silenced()]
        if wrong:
            raise _misconfigured(f"{check.msg} {check.hint or ''}".strip() for check in wrong)
        if name == "migrate":
            # `up` asks for itself, after what can be found out without a server.
            require_servers()
        command.execute(*options.pop("args", ()), **options | {"skip_checks": True})
    except CommandError as refusal:
        raise Invalid(str(refusal).removeprefix("Error: "), code="usage") from refusal
    finally:
        connections.close_all()


def _misconfigured(sentences: Iterable[str]) -> Invalid:
    return Invalid(" ".join(sentences), code="misconfigured")


def _session(options: dict[str, Any]) -> Session:
    return Session(
        workspace=options.get("workspace") or settings.DEPLOYMENT.workspace,
        api_key=options.get("api_key") or settings.DEPLOYMENT.api_key,
    )


def _found(words: list[str]) -> tuple[Verb, list[str]]:
    """The verb that the words begin with, and the words behind it."""
    known = verbs()
    for length in (2, 1):
        verb = known.get(" ".join(words[:length]))
        if verb is not None:
            return verb, words[length:]
    family = [name for name in known if name.startswith(f"{words[0]} ")]
    if family:
        raise Invalid(f"Say which: {', '.join(f'`lcm {name}`' for name in family)}.", code="usage")
    raise Invalid(f"There is no verb {words[0][:80]!r}; `lcm --help` lists them.", code="usage")


def _top_parser() -> ArgumentParser:
    lines = ["verbs:"]
    for chapter, summaries in _by_chapter().items():
        lines += ["", f" {chapter}:", *(f"  {name:<17} {summary}" for name, summary in summaries.items())]
    lines += ["", "exit status:", *(f"  {code:<3} {meaning}" for code, meaning in EXIT_CODES.items())]
    lines += ["", "`lcm VERB --help` tells more. A conversation is named by its number or by its session."]
    parser = Parser(
        prog="lcm",
        usage="lcm [--json] [--workspace NAME] [--api-key KEY] [--version] VERB ...",
        description="A memory for LLM agents that never loses a word.",
        epilog="\n".join(lines),
        formatter_class=RawDescriptionHelpFormatter,
    )
    _add_globals(parser)
    told = f"lcm {settings.SPECTACULAR_SETTINGS['VERSION']}"
    parser.add_argument("--version", action="version", version=told, help="Show which LCM this is.")
    parser.add_argument("verb", nargs="?", help=SUPPRESS)
    parser.add_argument("rest", nargs=REMAINDER, help=SUPPRESS)
    return parser


def _by_chapter() -> dict[str, dict[str, str]]:
    """What each verb does, under the headings of the reference: so many in one list nobody could read."""
    known = verbs()
    chapters: dict[str, dict[str, str]] = {"On this machine": dict(MANAGEMENT)}
    for operation in CATALOGUE:
        chapters.setdefault(operation.chapter, {})[operation.command] = known.pop(operation.command).summary
    chapters["On this machine"] |= {name: verb.summary for name, verb in known.items()}
    return chapters


def _add_globals(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", default=SUPPRESS, help="Answer in JSON, as the REST API does.")
    parser.add_argument(
        "--workspace", metavar="NAME", default=SUPPRESS, help=f"Or LCM_WORKSPACE. Default: {DEFAULT_WORKSPACE}."
    )
    parser.add_argument(
        "--api-key", metavar="KEY", default=SUPPRESS, help="Or LCM_API_KEY. Its workspace and scopes hold."
    )


def _survive_any_text() -> None:
    """Let the terminal show what it cannot encode, such as a lone surrogate, as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _show(result: Any, *, wants_json: bool) -> None:
    if wants_json:
        sys.stdout.write(as_json(result) + "\n")
    else:
        show_results.show(result, sys.stdout)


def _report(error: Exception, *, wants_json: bool) -> int:
    problem = problem_of(_explained(error))
    if problem is INTERNAL:
        logger.error("The command failed.", exc_info=error)
    in_json = wants_json or settings.LOGS_ONLY_JSON
    line = as_json(problem.as_json()) if in_json else f"lcm: {problem.detail} [{problem.code}]"
    sys.stderr.write(" ".join(line.splitlines()) + "\n")
    return problem.exit_code


def _explained(error: Exception) -> Exception:
    """Where the database does not answer, the refusal that says which one, and what it says itself."""
    if isinstance(error, OperationalError | InterfaceError):
        try:
            require_servers(with_our_own=True)
        except LcmError as refusal:
            return refusal
    return error
