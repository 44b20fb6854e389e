"""`lcm schema` describes every operation once, on its level, with params that validate."""

from __future__ import annotations

import json
import re
from importlib.metadata import version

import jsonschema
import pytest
from django.test import override_settings

from lcmsite.catalogue.operation import pieces, with_error_codes
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.cli.program import verbs
from tests.frozen.error_codes import all_errors, refusals
from tests.lcmsite.callers import Api, an_api_key, lcm

pytestmark = pytest.mark.django_db


def test_every_operation_is_on_its_one_level_under_the_names_that_the_faces_give_it():
    answer = Api(an_api_key(None, "read")).get("capabilities/").body

    levels = answer["levels"]
    operations = [each for level in levels for each in level["operations"]]
    assert answer["version"] == version("lcm")
    assert [level["level"] for level in levels] == [0, 1, 2, 3]
    assert [each["name"] for each in levels[0]["operations"]] == ["lcm_schema"]
    assert sorted(each["name"] for each in operations) == sorted(each.tool for each in CATALOGUE)
    append = next(each for each in operations if each["name"] == "lcm_append")
    assert (append["verb"], append["path"]) == ("POST", "/api/v1/conversations/{conversation_id}/messages/")
    assert (append["command"], append["tool"], append["needs"]) == ("lcm append", "lcm_append", "write")
    assert append["params"] == "AppendMessagesParams"
    assert "params_schema" not in append
    level_of = {each["name"]: level["level"] for level in levels for each in level["operations"]}
    names = ("lcm_append", "lcm_messages", "lcm_store_file", "lcm_compact", "lcm_grep", "lcm_expand_query")
    assert [level_of[name] for name in names] == [1, 1, 1, 2, 2, 3]


def test_a_full_answer_has_schemas_that_are_complete_in_themselves():
    answer = lcm("--json", "schema", "--full").json

    for level in answer["levels"]:
        for operation in level["operations"]:
            schema = operation["params_schema"]
            jsonschema.Draft202012Validator.check_schema(schema)
            assert "#/components/" not in json.dumps(schema), operation["name"]


@override_settings(LCM={"fresh_tail_count": 21})
def test_settings_and_limits_in_force_are_given_without_secrets_or_addresses():
    answer = lcm("--json", "schema", "--level", "0").json

    assert answer["settings"]["fresh_tail_count"] == 21
    assert answer["limits"].keys() == {"max_request_bytes", "request_timeout_seconds", "rate_limit"}
    assert not {"database_url", "secret_key", "chat_key", "chat_url"} & answer["settings"].keys()


@pytest.mark.parametrize(
    ("docstring", "told"),
    [
        ("Return one run; raises NotFound.", "Return one run; fails with `not_found`."),
        ("Raises\nNotFound, Invalid for a name.", "Fails with\n`not_found`, `invalid` for a name."),
        ("Raises Conflict `plan_outdated`, `plan_executed`.", "Fails with `plan_outdated`, `plan_executed`."),
        ("Raises Conflict\n(`stale_head`); PlanOutdated.", "Fails with `stale_head`; `plan_outdated`."),
        (
            "Conflict (`stale_head`, unless repeated) or Unknown",
            "`conflict` (`stale_head`, unless repeated) or Unknown",
        ),
    ],
)
def test_outside_of_python_an_error_is_named_by_its_code(docstring, told):
    assert with_error_codes(docstring) == told


def test_a_description_is_split_into_paragraphs_and_items():
    assert pieces("One\nline.\n\nIt removes:\n\n- a\n- b and\n  c\n\nEnd.") == [
        "One\nline.", "", "It removes:", "", "- a", "- b and\n  c", "", "End."
    ]  # fmt: skip


def test_no_description_names_a_class_of_errors_and_every_code_in_it_exists():
    codes = {each.code for each in refusals()}
    described = {each.tool: each.description for each in CATALOGUE} | {
        name: each.description for name, each in verbs().items()
    }
    classes = "|".join(each.__name__ for each in all_errors())

    for name, text in described.items():
        assert not re.search(rf"\b([Rr]aises?|{classes})\b", text), name
        for sentence in re.findall(r"[Ff]ails with(.*?)(?:\.\s|\.$)", text, re.DOTALL):
            named = re.findall(r"(?:^\s*|; |, |, and | or )`([a-z]+_?[a-z_]*)`", sentence)
            assert set(named) <= codes | {"ids", "query", "conversation_id"}, (name, named)


def test_on_a_terminal_it_is_json_too():
    assert json.loads(lcm("schema", "--level", "1").out)["levels"][0]["level"] == 1
