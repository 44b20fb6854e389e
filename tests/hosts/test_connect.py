"""`lcm connect` and `lcm disconnect`: shown first, made once, undone without a trace."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from conversations.errors import Conflict, Invalid
from lcmsite.access import keys
from lcmsite.hosts import host_state, host_verbs, json_edits, spool
from lcmsite.hosts.agent_host import host_named, host_names
from lcmsite.hosts.connecting import FileChange, make, unmake
from lcmsite.models import ApiKey
from tests.factories import a_workspace
from tests.lcmsite.callers import an_api_key, lcm

pytestmark = pytest.mark.django_db
PLUGIN = Path(__file__).parents[2] / "clients/plugins/claude-code"

SETTINGS = """\
{
  // my own
  "model": "opus",
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]}
    ]
  }
}
"""
OWN = {
    ".claude/settings.json": SETTINGS,
    ".claude.json": '{"numStartups":3,"mcpServers":{"other":{"type":"stdio","command":"x"}}}',
    ".claude/CLAUDE.md": "# Mine\n",
    ".codex/config.toml": '# mine\nmodel = "o9"\n',
    ".codex/AGENTS.md": "# Mine\n",
}


@pytest.fixture
def used(home):
    """A home with files of hosts in it."""
    a_workspace()
    for name, text in OWN.items():
        path = home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return home


def files_in(home: Path) -> dict[str, bytes]:
    """All files but LCM's own."""
    found = (path for path in home.rglob("*") if path.is_file() and ".local" not in path.parts)
    return {str(path.relative_to(home)): path.read_bytes() for path in found}


def connected(host: str, *more: str):
    found = lcm("--json", "connect", host, "--yes", *more)
    assert found.exit_code == 0, found.err
    return found


@pytest.mark.parametrize("host", host_names())
def test_a_host_is_shown_its_change_connected_once_and_let_go_without_a_trace(used, host):
    before = files_in(used)

    shown = lcm("connect", host, "--dry-run")
    assert shown.exit_code == 0 and "+" in shown.err and "lcm" in shown.err
    assert files_in(used) == before and not ApiKey.objects.exists()

    report = connected(host, "--mention").json
    during = files_in(used)
    assert report["made"] and during != before

    again = connected(host, "--mention").json
    assert again["changed"] == [] and not again["made"]
    assert files_in(used) == during and ApiKey.objects.count() == 1

    assert lcm("disconnect", host, "--yes").exit_code == 0
    assert files_in(used) == before
    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_the_change_in_a_pipe_is_a_diff_that_can_be_applied(used, tmp_path):
    text = SETTINGS.replace('"opus",', f'"opus",\n\t"note": "{"long " * 40}",').rstrip()
    (used / ".claude/settings.json").write_text(text)
    shown = lcm("connect", "claude-code", "--dry-run").err

    # Each file is patched in this folder, under its name.
    parts = [f"--- {part}" for part in shown.split("--- ") if part.startswith(str(used / ".claude/settings.json"))]
    diff = parts[0].replace(str(used / ".claude/settings.json"), "settings.json")
    (tmp_path / "settings.json").write_text(text)
    subprocess.run(["git", "apply", "-p0"], input=diff.encode(), cwd=tmp_path, check=True)

    patched = (tmp_path / "settings.json").read_text()
    assert '\t"note": "long long' in patched and " hook claude-code" in patched


@pytest.mark.sampled(3)
@pytest.mark.parametrize("host", host_names())
def test_in_a_fresh_home_nothing_is_left(home, host):
    a_workspace()

    connected(host)
    # What hooks leave while the host is connected.
    host_state.log("a line")
    os.close(spool.hold())
    host_state.write_text(host_state.path_of(host, "compacted-1"), "")
    lcm("disconnect", host, "--yes")

    assert files_in(home) == {}
    assert not host_state.folder().exists()


def test_of_several_hosts_the_last_one_takes_the_log_and_the_spool_along(home):
    a_workspace()
    for host in ("codex", "claude-code"):
        connected(host)
    spool.add({"host": "codex", "do": "import", "file": "/t.jsonl"})

    lcm("disconnect", "codex", "--yes")
    during = {path.name for path in host_state.folder().iterdir()}
    lcm("disconnect", "claude-code", "--yes")

    assert during == {"claude-code", "spool"}
    # What waits is kept.
    assert len(spool.entries()) == 1


@pytest.mark.parametrize(("host", "more"), [("codex", ()), ("claude-code", ("--plugin",))])
def test_connecting_again_records_where_lcm_is_now(used, settings, host, more):
    def api_url() -> str:
        return host_state.read(host, "connection.json")["api_url"]

    connected(host, *more)
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, host="::1", port=9)
    moved = connected(host, *more)
    assert (moved.json["made"], api_url()) == (True, "http://[::1]:9")

    given = connected(host, *more, "--url", "http://here")

    assert (given.json["made"], api_url(), ApiKey.objects.count()) == (True, "http://here", 1)


def test_hooks_find_what_the_settings_name_from_any_directory(used, monkeypatch):
    monkeypatch.chdir(used)
    monkeypatch.setenv("LCM_DATA_DIR", "./data")
    monkeypatch.setenv("LCM_CHAT_KEY_FILE", "~/key")
    monkeypatch.setenv("LCM_API_KEY_FILE", "~/key")
    monkeypatch.setenv("CODEX_HOME", "elsewhere")

    report = connected("codex").json

    environment = host_state.read("codex", "connection.json")["environment"]
    assert environment["LCM_DATA_DIR"] == str(used / "data")
    assert environment["LCM_CHAT_KEY_FILE"] == str(used / "key")
    # A host has a key of its own.
    assert "LCM_API_KEY_FILE" not in environment
    assert report["changed"][0] == str(used / "elsewhere/hooks.json")


def test_without_a_terminal_and_without_yes_nothing_is_changed(used):
    before = files_in(used)

    refused = lcm("connect", "claude-code")

    assert refused.exit_code == 2 and "--yes" in refused.err
    assert files_in(used) == before


@pytest.mark.parametrize("option", ["--url", "--mcp-url"])
@pytest.mark.parametrize("address", ["localhost:8000", "http://127.0.0.1:99999", "http://"])
def test_an_address_that_cannot_be_called_is_refused(used, option, address):
    refused = lcm("connect", "claude-code", "--yes", option, address)

    assert refused.exit_code == 2 and option in refused.err
    assert not host_state.read("claude-code", "connection.json")


def test_the_key_of_the_host_is_written_and_not_shown(used):
    shown = connected("claude-code")
    again = lcm("connect", "claude-code", "--dry-run", "--mention")

    key = json.loads((used / ".claude.json").read_text())["mcpServers"]["lcm"]["headers"]["Authorization"]
    key = key.removeprefix("Bearer ")
    assert key.startswith("lcm_")
    assert key not in shown.out + shown.err + again.out + again.err
    assert (used / ".local/state/lcm/claude-code/connection.json").stat().st_mode & 0o077 == 0
    assert [row.scopes for row in ApiKey.objects.all()] == [["write"]]


def test_a_file_with_the_key_is_for_its_owner_alone_until_the_key_is_gone(used):
    config, instructions = (used / ".codex" / name for name in ("config.toml", "AGENTS.md"))
    for path in (config, instructions):
        path.chmod(0o644)

    for url in ("http://here/mcp", "http://there/mcp"):
        connected("codex", "--mention", "--mcp-url", url)
        assert [path.stat().st_mode & 0o777 for path in (config, instructions)] == [0o600, 0o644]
    config.open("a").write("# mine\n")
    lcm("disconnect", "codex", "--yes")

    assert config.stat().st_mode & 0o777 == 0o644


def test_a_full_disk_leaves_no_unfinished_file(used):
    server = used / ".claude.json"
    before = files_in(used)
    change = FileChange(str(server), server.read_bytes(), b"a key" * 100_000)

    def write_too_much():
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))
        with pytest.raises(Invalid, match="claude.json"):
            make(host_named("claude-code"), [change])
        with pytest.raises(OSError):
            host_state.write("claude-code", "connection.json", {"api_key": "a key" * 100_000})

    # In a process of its own, as no file of the process could grow beyond.
    process = multiprocessing.get_context("fork").Process(target=write_too_much)
    process.start()
    process.join(60)

    assert process.exitcode == 0
    assert files_in(used) == before
    assert [path.name for path in host_state.path_of("claude-code", "").iterdir()] == ["written.json"]


def test_a_file_behind_a_link_is_written_and_taken_away_there(used):
    link, target = used / ".codex/hooks.json", used / "dotfiles/codex/hooks.json"
    link.symlink_to(target)

    connected("codex")
    assert link.is_symlink() and "Stop" in target.read_text()
    lcm("disconnect", "codex", "--yes")

    assert link.is_symlink() and not (used / "dotfiles").exists()


def test_what_others_change_meanwhile_stays(used):
    connected("claude-code", "--mention")
    connected("codex")
    server = used / ".claude.json"
    server.write_text(json.dumps({**json.loads(server.read_text()), "numStartups": 4}, indent=2))
    config = used / ".codex/config.toml"
    config.write_text(config.read_text() + "\n[projects.boats]\ntrust_level = 'trusted'\n")
    memory = used / ".claude/CLAUDE.md"
    memory.write_text(memory.read_text() + "More of mine.\n")

    lcm("disconnect", "claude-code", "--yes")
    lcm("disconnect", "codex", "--yes")

    assert json.loads(server.read_text()) == {**json.loads(OWN[".claude.json"]), "numStartups": 4}
    assert tomllib.loads(config.read_text()) == {"model": "o9", "projects": {"boats": {"trust_level": "trusted"}}}
    assert memory.read_text() == "# Mine\nMore of mine.\n"
    assert (used / ".claude/settings.json").read_text() == SETTINGS


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
def test_what_the_host_writes_while_the_person_reads_stays(used, monkeypatch, verb):
    connected("claude-code")
    server = used / ".claude.json"

    def agreed(*_, **__):
        server.write_text(json.dumps({**json.loads(server.read_text()), "numStartups": 4}, indent=2))
        return True

    monkeypatch.setattr(host_verbs, "_agreed", agreed)
    if verb == "connect":
        server.write_text(OWN[".claude.json"])
    done = lcm(verb, "claude-code")

    found = json.loads(server.read_text())
    assert (done.exit_code, found.pop("numStartups")) == (0, 4)
    assert ("lcm" in found["mcpServers"]) == (verb == "connect") and "other" in found["mcpServers"]


@pytest.mark.parametrize("write", [make, unmake])
def test_a_file_that_is_not_as_it_was_read_is_not_written(used, write):
    server = used / ".claude.json"
    change = FileChange(str(server), b"as it was read", b"with LCM")

    with pytest.raises(Conflict, match="claude.json"):
        write(host_named("claude-code"), [change])

    assert server.read_text() == OWN[".claude.json"]


def test_what_was_taken_out_is_written_again(used):
    connected("claude-code")
    (used / ".claude/settings.json").write_text(SETTINGS)

    report = connected("claude-code").json

    assert [Path(path).name for path in report["changed"]] == ["settings.json"]
    lcm("disconnect", "claude-code", "--yes")
    assert files_in(used) == {name: text.encode() for name, text in OWN.items()}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("host", "file", "written", "touched"),
    [
        ("claude-code", ".claude/settings.json", '"timeout": 1\n', '"timeout": 9\n'),
        ("codex", ".codex/hooks.json", '"timeout": 3\n', '"timeout": 9,\n"async": true\n'),
        ("cursor", ".cursor/hooks.json", "hook cursor", "hook cursor --quiet"),
    ],
)
def test_connecting_again_replaces_a_hook_of_its_own_that_was_changed(used, host, file, written, touched):
    connected(host)
    path = used / file
    text = path.read_text()
    path.write_text(text.replace(written, touched))

    report = connected(host).json

    assert report["changed"] == [str(path)]
    assert json_edits.value_of(path.read_text()) == json_edits.value_of(text)
    lcm("disconnect", host, "--yes")
    assert files_in(used) == {name: text.encode() for name, text in OWN.items()}


def test_connecting_again_leaves_a_hook_that_others_have_added_to(used):
    connected("claude-code")
    path = used / ".claude/settings.json"
    value = json_edits.value_of(path.read_text())
    own = value["hooks"]["Stop"][1]
    theirs = {"hooks": [{**own["hooks"][0], "timeout": 9}, {"type": "command", "command": "say done"}]}
    value["hooks"]["Stop"][1] = theirs
    path.write_text(json.dumps(value))

    connected("claude-code")

    assert json_edits.value_of(path.read_text())["hooks"]["Stop"][1:] == [theirs, own]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("host", "file", "written", "touched", "named"),
    [
        ("claude-code", ".claude.json", '"type": "http"', '"type": "sse"', "mcpServers.lcm"),
        ("claude-code", ".claude/settings.json", '"timeout": 1\n', '"timeout": 9\n', "hooks.SessionEnd"),
        ("claude-code", ".claude/settings.json", "lcm hook claude-code statusline", "{} | cat", "statusLine"),
        ("codex", ".codex/config.toml", "http_headers", "enabled = true\n{}", "mcp_servers.lcm"),
        ("codex", ".codex/config.toml", "# <<< lcm", "# mine", "mcp_servers.lcm"),
        ("codex", ".codex/AGENTS.md", "## Memory", "# Memory", "lcm connect"),
        ("pi", ".pi/agent/extensions/lcm.ts", "import", "// mine\nimport", "everything"),
    ],
)
def test_what_was_changed_since_is_named_until_it_is_removed_by_hand(used, host, file, written, touched, named):
    connected(host, "--mention")
    path = used / file
    text = path.read_text()
    path.write_text(text.replace(written, touched.format(written)))
    assert path.read_text() != text

    first, again = (lcm("--json", "disconnect", host, "--yes").json for _ in range(2))
    left = files_in(used)
    path.unlink()
    last = lcm("--json", "disconnect", host, "--yes")

    assert first["next"] == again["next"] and named in first["next"] and str(path) in first["next"]
    own = {name: text.encode() for name, text in OWN.items()}
    assert {name for name in own | left if own.get(name) != left.get(name)} == {file}
    assert not ApiKey.objects.filter(revoked_at=None).exists()
    assert (last.exit_code, last.json.get("next")) == (0, None)
    assert lcm("disconnect", host, "--yes").exit_code == 4


def test_what_was_there_already_is_taken_out_as_well(used):
    connected("pi")
    connected("claude-code")
    shutil.rmtree(used / ".local")
    (used / ".claude.json").write_text(OWN[".claude.json"])
    settings = used / ".claude/settings.json"
    value = json_edits.value_of(settings.read_text())
    del value["hooks"]["Stop"][1], value["statusLine"]
    settings.write_text(json.dumps(value))

    for host in ("pi", "claude-code"):
        connected(host)
        lcm("disconnect", host, "--yes")

    assert "lcm" not in settings.read_text()
    assert files_in(used).keys() == OWN.keys()


@pytest.mark.parametrize(
    ("file", "text", "exit_code", "named"),
    [(".claude.json", '{"mcpServers": {"lcm": {"command": "mine"}}}', 4, "mcpServers.lcm"),
     (".claude/settings.json", '{"hooks": ', 2, "settings.json")],
)  # fmt: skip
def test_what_cannot_be_added_to_is_named_and_left_alone(used, file, text, exit_code, named):
    (used / file).write_text(text)
    before = files_in(used)

    refused = lcm("connect", "claude-code", "--yes")

    assert refused.exit_code == exit_code and named in refused.err
    assert files_in(used) == before and not ApiKey.objects.exists()


def test_the_plugin_of_claude_code_has_the_same_hooks():
    groups = host_named("claude-code").hook_groups("lcm hook claude-code")

    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]

    assert hooks == {event: [group] for event, group in groups.items()}


def test_with_the_plugin_no_file_of_the_host_is_written(used):
    before = files_in(used)

    connected("claude-code", "--plugin")

    assert files_in(used) == before and ApiKey.objects.count() == 1
    assert lcm("connect", "codex", "--yes", "--plugin").exit_code == 2
    assert lcm("disconnect", "claude-code", "--yes").exit_code == 0
    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_where_the_database_is_away_disconnecting_says_which_key_is_still_valid(used):
    before = files_in(used)
    connected("codex")
    number = host_state.read("codex", "connection.json")["api_key_id"]

    def away(*_):
        raise OperationalError("the server closed the connection")

    with connection.execute_wrapper(away):
        report = lcm("disconnect", "codex", "--yes")

    assert f"lcm key revoke {number}" in report.out and report.exit_code == 0
    assert files_in(used) == before


def test_only_the_key_of_the_host_is_revoked(used):
    connected("codex")
    connection = host_state.read("codex", "connection.json")
    # The number that the key of the host has in another database.
    of_another = ApiKey.objects.get(key_hash=keys.hash_of_key(an_api_key()))
    host_state.write("codex", "connection.json", {**connection, "api_key_id": of_another.pk})

    lcm("disconnect", "codex", "--yes")

    assert ApiKey.objects.get(revoked_at=None) == of_another


def test_what_the_person_has_already_is_not_written(used):
    (used / ".cursor").mkdir()
    own = {
        ".claude/settings.json": '{"statusLine": {"type": "command", "command": "mine"}}',
        ".cursor/hooks.json": '{"version": 2, "hooks": {}}',
    }
    for name, text in own.items():
        (used / name).write_text(text)

    for host in ("claude-code", "cursor"):
        connected(host)
    settings, hooks = (json.loads((used / name).read_text()) for name in own)
    for host in ("claude-code", "cursor"):
        (used / list(own)[host == "cursor"]).open("a").write("\n")
        assert lcm("disconnect", host, "--yes").exit_code == 0

    assert settings["statusLine"]["command"] == "mine" and "Stop" in settings["hooks"]
    assert hooks["version"] == 2 and "afterAgentResponse" in hooks["hooks"]
    for name, text in own.items():
        assert json.loads((used / name).read_text()) == json.loads(text)
