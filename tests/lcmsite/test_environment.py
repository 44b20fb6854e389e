"""The environment as values: what is given is read, what is wrong is kept as a problem."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conversations.policy import SecretFile
from lcmsite.environment import Deployment, Environment, variables

PROJECT = Path(__file__).resolve().parents[2]


REDIS = "redis://localhost:6379/2?protocol=3&socket_timeout=2.5&health_check_interval=10"
DEFAULTS = '{"max_depth": 3, "fresh_tail_count": 4}'
GOOD = {
    "nothing of LCM's": ({"HOME": "/root", "LCMX": "1"}, {}, {}),
    "empty values": ({"LCM_PORT": "", "LCM_DATABASE_URL": " ", "LCM_NO_SUCH_THING": ""}, {}, {}),
    "values of each type": (
        {"LCM_PORT": "9000", "LCM_HTTPS": "yes", "LCM_HOST": "::1", "LCM_CONTEXT_THRESHOLD": "0.5"},
        {"port": 9000, "https": True, "host": "::1"},
        {"context_threshold": 0.5},
    ),
    "Redis with options": ({"LCM_REDIS_URL": REDIS}, {"redis_url": REDIS}, {}),
    "defaults of conversations": (
        {"LCM_CONVERSATION_DEFAULTS": DEFAULTS, "LCM_FRESH_TAIL_COUNT": "6"},
        {"conversation_defaults": DEFAULTS},
        {"max_depth": 3, "fresh_tail_count": 6},
    ),
}


@pytest.mark.parametrize(("given", "deployment", "overrides"), GOOD.values(), ids=GOOD)
def test_good_values_arrive_with_their_types_and_all_else_has_its_default(given, deployment, overrides):
    environment = Environment.read(given)

    assert environment.deployment == Deployment(**deployment)
    assert environment.overrides == overrides
    assert environment.problems == ()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("LCM_PORT", "eighty", "whole number"),
        ("LCM_PORT", "70000", "1 to 65535"),
        ("LCM_HTTPS", "perhaps", "yes or no"),
        ("LCM_CONTEXT_THRESHOLD", "nan", "number"),
        ("LCM_CONTEXT_THRESHOLD", "7", "outside"),
        ("LCM_LOG_FORMAT", "xml", "auto, json, console"),
        ("LCM_REDIS_URL", "localhost", "starts with redis://"),
        ("LCM_REDIS_URL", "redis://:hunter2@localhost/0?protocol=x", "cannot use its option protocol."),
        ("LCM_REDIS_URL", "redis://localhost/0?protocol=3&colour=red&db=q", "cannot use its option colour, db."),
        ("LCM_REDIS_URL", "redis://localhost/0?host=other&port=z", "cannot use its option port."),
        ("LCM_REDIS_URL", "rediss://localhost/0?ssl_cert_reqs=hunter2", "cannot use its option ssl_cert_reqs."),
        ("LCM_DATABASE_URL", "postgres://u:p@host:port/db", "starts with postgres://"),
        ("LCM_DATABASE_URL", "mysql://me:hunter2@host/db", "starts with postgres://"),
        ("LCM_CONVERSATION_DEFAULTS", "max_depth=3", "not JSON"),
        ("LCM_CONVERSATION_DEFAULTS", "[3]", "not a JSON object"),
        ("LCM_CONVERSATION_DEFAULTS", '{"max_depth": "deep"}', "max_depth: 'deep' is not a whole number"),
        ("LCM_CONVERSATION_DEFAULTS", '{"no_such_thing": 1}', "not a setting of a conversation"),
    ],
)
def test_a_value_that_cannot_be_used_leaves_the_default_in_force(name, text, said):
    environment = Environment.read({name: text})

    [problem] = environment.problems
    assert environment.deployment == Deployment(conversation_defaults=environment.deployment.conversation_defaults)
    assert environment.overrides == {}
    assert problem.id == "lcm.E002" and problem.hint
    assert name in problem.msg and said in problem.msg and "hunter2" not in problem.msg


SECRETS = {name: variable for name, variable in variables().items() if variable.is_secret}


@pytest.mark.parametrize("name", SECRETS)
def test_every_secret_can_be_given_as_a_file(tmp_path, name):
    schemes = SECRETS[name].knob.metadata["schemes"]
    secret = f"{schemes[0]}://ann:hunter2@host/1" if schemes else "hunter2"
    file = tmp_path / "secret"
    file.write_text(f"{secret}\n")

    environment = Environment.read({f"{name}_FILE": str(file)})

    assert environment.problems == () and environment.given == {name}
    if SECRETS[name].owner is Deployment:
        assert environment.deployment == replace(Deployment(), **{SECRETS[name].knob.name: secret})
    else:
        # It is read anew at each use.
        assert environment.overrides == {SECRETS[name].knob.name: SecretFile(str(file))}
    assert "hunter2" not in repr(environment)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "the file {} cannot be read (No such file or directory)"),
        ("", "the file {} is empty"),
        ("\n", "the file {} is empty"),
        ("hunter2" * 2000, "the file {} is too long for a secret"),
        ("mysql://me:hunter2@host/db", "not an address that starts with postgres://"),
    ],
)
def test_a_file_without_the_secret_is_told_with_its_path_and_not_its_content(tmp_path, content, said):
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)

    environment = Environment.read({"LCM_DATABASE_URL_FILE": str(file)})

    [problem] = environment.problems
    assert environment.deployment == Deployment() and problem.id == "lcm.E002"
    assert problem.msg.startswith(f"LCM_DATABASE_URL_FILE: {said.format(file)}")
    assert "hunter2" not in problem.msg


@pytest.mark.parametrize(
    ("name", "path", "said"),
    [
        ("LCM_DATABASE_URL", "postgres://me:hunter2@host/db", ": the file cannot be read (No such file or directory)"),
        ("LCM_METRICS_TOKEN", __file__, ": LCM_METRICS_TOKEN is also set"),
        ("LCM_PORT", "/run/secrets/port", " is not a setting of LCM."),
    ],
)
def test_what_cannot_be_given_as_a_file_is_told_without_the_secret(name, path, said):
    given = {f"{name}_FILE": path} | ({name: "hunter2"} if name == "LCM_METRICS_TOKEN" else {})

    [problem] = Environment.read(given).problems

    assert problem.msg.startswith(f"{name}_FILE{said}") and "hunter2" not in problem.msg
    assert not {f"{each}_FILE" for each in SECRETS} & variables().keys()


def test_only_the_settings_read_the_environment():
    # These hand it on to the processes they start, lend tiktoken and the Prometheus client a directory by it, or look
    # for the sessions and the settings of agents where these keep them.
    others = {
        "lcmsite/ops/supervisor.py",
        "lcmsite/embedded_postgres/cluster.py",
        "lcmsite/ops/backup/programs.py",
        "lcmsite/ops/backup/backups.py",
        "lcmsite/ops/metrics/directory.py",
        "conversations/content/tokens.py",
        "lcmsite/importing/discovery_verbs.py",
        "lcmsite/hosts/hook.py",
        "lcmsite/hosts/host_state.py",
        "lcmsite/hosts/host_verbs.py",
        "lcmsite/hosts/programs/claude_code_host.py",
    }
    readers = {
        str(file.relative_to(PROJECT))
        for room in ("conversations", "compaction", "retrieval", "integrity", "lcmsite")
        for file in (PROJECT / room).rglob("*.py")
        if re.search(r"os\.(environ(?!\.setdefault\(\"DJANGO_SETTINGS_MODULE\")|getenv)", file.read_text())
    }

    assert readers - others == {"lcmsite/settings.py"}
