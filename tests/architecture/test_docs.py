"""The documents say what is: settings, commands, links and paths in them are compared with the code."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conversations.errors import Invalid
from lcmsite.api.openapi import DOWNLOAD, LEDGER
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.cli.program import MANAGEMENT, parser_of, verbs
from lcmsite.environment import variables
from lcmsite.ops.documents import PROJECT, README, generated_documents

DOCUMENTS = sorted([README, *PROJECT.glob("[a-z]*/README.md"), *PROJECT.glob("docs/*.md")])
of_each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
# docs/upgrade.md names what is gone.
of_each_document_of_today = pytest.mark.parametrize(
    "document",
    [each for each in DOCUMENTS if each.name != "upgrade.md"],
    ids=lambda path: str(path.relative_to(PROJECT)),
)

_PATH = re.compile(
    r"`((?:conversations|compaction|retrieval|integrity|lcmsite|tests|templates|docs)/[\w/.-]+\.\w+|[\w/-]+\.(?:py|sql))`"
)
# Options of `lcm` itself, before the verb; those that take a value.
_OPTIONS = {"--json": 0, "--help": 0, "--version": 0, "--workspace": 1, "--api-key": 1}
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
_INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.M)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)\s]*)\)")
_SETTING = re.compile(r"\bLCM_[A-Z0-9]+(?:_[A-Z0-9]+)*\b")
# A verb, a path (`.../` is short for that of a conversation), and params in a query or in an object.
_REQUEST = re.compile(r"\b(GET|POST|PUT) (?:/api/v1/)?((?:\.\.\./|[\w-]+/)[\w/{}.-]*)(?:\?(\S*)| ({.*}))?")
_COMMENT = re.compile(r"(?:^|\s)#\s.*$", re.M)
_ENDS = ";|&()\n"
# The programs that `make` runs with ARGS.
MEASUREMENTS = {"bench": "tests.benchmarks", "eval": "tests.evaluation"}
# What may stand before a program's name and runs it.
_RUNNERS = {"$", "exec", "--", "sudo"}


def code_blocks(text: str) -> list[str]:
    """What stands apart as code, fenced or indented."""
    fenced = [match[2] for match in _FENCED.finditer(text)]
    indented = [re.sub(r"^ {4}", "", block, flags=re.M) for block in _INDENTED.findall(_FENCED.sub("", text))]
    return [*fenced, *(block for block in indented if block.strip())]


def inline_code(text: str) -> list[str]:
    return _INLINE.findall(_FENCED.sub("", text))


def links(text: str) -> list[str]:
    """The targets of links and pictures within the project: a path, an anchor, or both."""
    return _LINK.findall(_INLINE.sub("", _FENCED.sub("", text)))


def anchors(document: Path) -> set[str]:
    """What the headings of a document can be reached by."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", document.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def calls(block: str, program: str) -> Iterator[list[str]]:
    """The words behind each call of a program in a piece of shell."""
    if not re.search(rf"(?:^|[\s/(]){program}\b", block, re.M):
        return
    reader = shlex.shlex(_COMMENT.sub("", block), posix=True, punctuation_chars=_ENDS)
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t", True, ""
    call: list[str] | None = None
    before = "\n"
    for word in reader:
        if set(word) <= set(_ENDS):
            if call is not None:
                yield call
            call = None
        elif call is not None:
            call.append(word)
        elif word.rpartition("/")[2] == program and (set(before[-1]) <= set(_ENDS) or before in _RUNNERS):
            call = []
        before = word
    if call is not None:
        yield call


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.M)) - {"help"}


def verb_of(words: list[str]) -> tuple[str | None, list[str]]:
    """The verb, and the words behind it; None where there are only options."""
    while words and words[0] in _OPTIONS:
        words = words[1 + _OPTIONS[words[0]] :]
    known = {*verbs(), *MANAGEMENT}
    for length in (2, 1):
        if " ".join(words[:length]) in known:
            return " ".join(words[:length]), words[length:]
    return None, words


def is_known(words: list[str]) -> bool:
    """Whether this is a verb, or a family of verbs (`lcm ledger ...`), or options alone."""
    verb, rest = verb_of(words)
    families = {name.split()[0] for name in verbs() if " " in name}
    return verb is not None or not rest or rest == ["..."] or (rest[0] in families and rest[1:] == ["..."])


@pytest.mark.parametrize("document", ["README.md", "docs/reference.md", "docs/deployment.md", "integrity/README.md"])
def test_what_is_made_from_the_code_is_what_would_be_made_now(document: str):
    path = PROJECT / document

    assert path.read_text() == generated_documents()[path], "`make docs` writes it."


def test_every_operation_is_in_the_reference_once():
    headings = re.findall(r"^### lcm (.+)$", (PROJECT / "docs" / "reference.md").read_text(), re.M)

    assert sorted(headings) == sorted(operation.command for operation in CATALOGUE)


def test_readme_names_every_make_target():
    named = {call[0] for block in code_blocks(README.read_text()) for call in calls(block, "make")}

    assert named == targets()


@of_each_document
def test_links_anchors_and_paths_lead_somewhere(document: Path):
    text = document.read_text()

    # A room's README says where in the room a file lies.
    missing = [
        path for path in _PATH.findall(text) if not ((PROJECT / path).exists() or (document.parent / path).exists())
    ]
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        if not target.exists() or anchor and anchor not in anchors(target):
            missing.append(link)

    assert not missing


@of_each_document
def test_every_command_that_is_named_exists_and_every_call_that_is_shown_would_be_understood(document: Path):
    blocks, inline = code_blocks(document.read_text()), inline_code(document.read_text())

    named = {call[0] for piece in (*blocks, *inline) for call in calls(piece, "make") if call}

    assert {name for name in named if name.replace("-", "").isalpha()} <= targets()
    assert [words for piece in inline for words in verbs_in(piece) if not is_known(words)] == []
    assert [fault for block in blocks for words in calls(block, "lcm") for fault in faults_in(words)] == []


@of_each_document_of_today
def test_every_setting_that_is_named_exists(document: Path):
    of_plugins = {name for file in PROJECT.glob("clients/**/lcm.*s") for name in _SETTING.findall(file.read_text())}
    files_of_secrets = {f"{name}_FILE" for name, variable in variables().items() if variable.is_secret}

    assert set(_SETTING.findall(document.read_text())) <= variables().keys() | files_of_secrets | of_plugins


@of_each_document_of_today
def test_every_request_that_is_named_has_an_operation_that_takes_its_params(document: Path):
    text = document.read_text()

    assert [match[0] for piece in (*code_blocks(text), *inline_code(text)) for match in misunderstood_in(piece)] == []


def misunderstood_in(piece: str) -> Iterator[re.Match[str]]:
    known = [(each.verb, path, each.params.model_fields.keys()) for each in CATALOGUE for path in each.paths]
    known += [("GET", DOWNLOAD, ()), ("GET", LEDGER, ())]
    for match in _REQUEST.finditer(piece):
        verb, path, query, body = match.groups()
        path = re.sub(r"^\.\.\./", "conversations/7/", path)
        named = set(re.findall(r"(?:^|&)(\w+)=", query or "")) | set(re.findall(r'"(\w+)"(?=[:,}])', body or ""))
        if not any(
            verb == known_verb and re.fullmatch(re.sub(r"{\w+}", "[^/]+", known_path), path) and named <= {*params}
            for known_verb, known_path, params in known
        ):
            yield match


@of_each_document
def test_every_measurement_that_is_shown_would_begin(document: Path):
    text = document.read_text()
    shown = [call for piece in (*code_blocks(text), *inline_code(text)) for call in calls(piece, "make")]
    refused = []
    for target, *arguments in filter(None, shown):
        if target in MEASUREMENTS and arguments:
            given = shlex.split(arguments[0].removeprefix("ARGS="))
            # It parses what comes before `--help`, and measures nothing.
            command = [sys.executable, "-m", MEASUREMENTS[target], *given, "--help"]
            result = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=60)
            refused += [result.stderr] if result.returncode else []

    assert refused == []


def verbs_in(piece: str) -> Iterator[list[str]]:
    """The verbs of LCM that are named: `lcm key create|list` names two."""
    family, *others = piece.split("|")
    if family.startswith("lcm "):
        first = family.split()[1:]
        yield from (first, *([*first[:-1], other] for other in others))


def faults_in(words: list[str]) -> Iterator[tuple[list[str], str]]:
    verb, rest = verb_of(words)
    if verb is None and rest:
        yield words, "there is no such verb"
    elif verb in verbs() and "..." not in rest:
        try:
            parser_of(verbs()[verb]).parse_intermixed_args(rest)
        except Invalid as refusal:
            yield words, refusal.detail


def test_calls_are_found_wherever_a_shell_would_find_them():
    block = """ID=$(lcm --json find tour | tool) && .venv/bin/lcm grep a "b; c"   # it's lcm nothing
    $ lcm up; echo lcm down
    """

    assert list(calls(block, "lcm")) == [["--json", "find", "tour"], ["grep", "a", "b; c"], ["up"]]


def test_every_room_has_a_readme():
    rooms = [path.parent for path in PROJECT.glob("*/migrations")]

    assert len(rooms) == 5
    assert not [room.name for room in rooms if not (room / "README.md").exists()]


def test_every_test_that_ci_names_exists():
    named = re.findall(r"tests/[\w/]+\.py", (PROJECT / ".ci" / "run").read_text())

    assert named
    assert [each for each in named if not (PROJECT / each).exists()] == []
