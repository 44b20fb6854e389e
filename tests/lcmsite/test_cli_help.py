"""What the command line says about itself: help, examples, suggestions and shell completion."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from conversations.errors import Invalid
from lcmsite.catalogue.problems import EXIT_CODES
from lcmsite.cli.program import MANAGEMENT, SHELLS, parser_of, run, verbs
from lcmsite.cli.verbs import GROUPS, HELP
from tests.lcmsite.callers import lcm

VERBS = verbs()


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as end:
        run([*words, "--help"])
    assert end.value.code == 0
    return capsys.readouterr().out


def test_help_lists_each_verb_once_in_its_group_and_every_exit_status(capsys):
    shown = help_of(capsys).partition("\nverbs:\n")[2]

    listed = re.findall(r"^  ([a-z][a-z -]+?)  +[A-Z]", shown, re.M)
    assert listed == [name for names in GROUPS.values() for name in names]
    assert sorted(HELP) == sorted([*VERBS, *MANAGEMENT])
    assert re.findall(r"^ (\S.*):$", shown, re.M) == list(GROUPS)
    assert all(f"{code:<3} {meaning}" in shown for code, meaning in EXIT_CODES.items())


@pytest.mark.parametrize("name", [*VERBS, *MANAGEMENT])
def test_a_verb_explains_itself_with_a_sentence_described_options_and_an_example(capsys, name):
    shown = help_of(capsys, *name.split())

    assert f"lcm {name}" in shown and HELP[name].example in " ".join(shown.split())
    if name in VERBS:
        parser = parser_of(VERBS[name])
        words = [word for word in shlex.split(HELP[name].example.partition(" > ")[0]) if not word.startswith("LCM_")]
        assert HELP[name].sentence.endswith(".")
        assert all(action.help for action in parser.actions)
        assert words[: len(name.split()) + 1] == ["lcm", *name.split()]
        parser.parse_intermixed_args(words[len(name.split()) + 1 :])


@pytest.mark.parametrize("word", ["anchor", "embed", "key", "ledger", "map", "trigram-index", "user", "workspace"])
def test_the_help_of_a_first_word_lists_the_verbs_that_share_it(capsys, word):
    shown = help_of(capsys, word)

    family = [name for name in HELP if name.startswith(f"{word} ")]
    assert f"usage: lcm {word}" in shown
    assert all(re.search(rf"^  {name}  +{re.escape(HELP[name].sentence)}$", shown, re.M) for name in family)
    assert lcm("key").exit_code == 2


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["gerp", "x"], "Did you mean grep?"),
        (["kye", "list"], "Did you mean key?"),
        (["key", "crate"], "Did you mean key create?"),
        (["migrat"], "Did you mean migrate?"),
        (["grep", "--scpoe", "all", "x"], "Did you mean --scope?"),
        (["grep", "--scpoe=all", "x"], "Did you mean --scope?"),
        (["key", "list", "--jsno"], "Did you mean --json?"),
        (["--worskpace", "x", "list"], "Did you mean --workspace?"),
        (
            ["expand-range", "1", "--from-seq", "1", "--to-seq", "4"],
            "Give FROM_SEQ and TO_SEQ by place, without a name.",
        ),
    ],
)
def test_a_mistyped_verb_or_option_gets_a_suggestion(words, suggestion):
    refused = lcm(*words)

    assert refused.exit_code == 2
    assert suggestion in refused.err and "[usage]" in refused.err


def test_a_wrong_choice_is_refused_with_the_words_to_choose_from():
    with pytest.raises(Invalid, match="choose from '?claude-code'?, ") as refusal:
        parser_of(verbs()["export"]).parse_args(["1", "--format", "bogus"])

    assert "ExportFormat" not in refusal.value.detail


def test_what_resembles_nothing_gets_no_suggestion():
    assert "Did you mean" not in lcm("zzzzzz").err + lcm("list", "--zzzzzz", "1").err


def test_only_known_shells_are_completed():
    with pytest.raises(Invalid):
        parser_of(VERBS["completion"]).parse_args(["tcsh"])


@cache
def completion_of(shell: str) -> str:
    return lcm("completion", shell).out


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_is_valid_in_its_shell(shell, tmp_path):
    script = tmp_path / "lcm"
    script.write_text(completion_of(shell))

    assert all(name.split()[-1] in script.read_text() for name in VERBS)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    assert subprocess.run([shell, "-n", script], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["gre"], {"grep"}),
        (["grep", "--mo"], {"--mode"}),
        (["grep", "--mode", ""], {"full_text", "regex"}),
        (["key", ""], {"create", "list", "revoke"}),
        (["anchor", ""], {"list", "show", "key", "verify"}),
        (["up", "--sam"], {"--sample"}),
        (["completion", ""], set(SHELLS)),
        (["backup", "/us"], {"/usr"}),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_verbs_options_choices_and_paths(words, offered, tmp_path: Path):
    script = tmp_path / "lcm"
    script.write_text(completion_of("bash"))
    typed = " ".join(shlex.quote(word) for word in ["lcm", *words])
    asked = f'. "$1"; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _shtab_lcm; printf "%s\\n" "${{COMPREPLY[@]}}"'

    answer = subprocess.run(["bash", "-c", asked, "-", script], capture_output=True, text=True, check=True, timeout=60)

    assert offered <= set(answer.stdout.split())
