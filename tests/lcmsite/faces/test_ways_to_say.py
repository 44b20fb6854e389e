"""How lists, moments and pages of a search are said over REST and on the command line; the index of trigrams."""

from __future__ import annotations

import pytest

from retrieval.policy import RetrievalPolicy
from retrieval.search.patterns import trigrams
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import Api, an_api_key, lcm

pytestmark = pytest.mark.django_db


@pytest.fixture
def boats() -> list[int]:
    return [a_conversation(f"boats {name}", f"the {name} harbour", session_id=name).conversation_id for name in "abc"]


def test_a_list_is_said_by_commas_or_as_json_or_one_by_one(boats, tmp_path):
    a, b, _ = boats
    (tmp_path / "roles").write_text("user, tool")
    api = Api(an_api_key(None, "read"))

    by_commas = lcm("--json", "grep", "boats", "--conversation-ids", f"a,{b}", "--roles", "user,tool").json
    as_json = lcm("--json", "grep", "boats", "--conversation-ids", f'["a", {b}]', "--roles", '["user", "tool"]').json
    in_a_file = lcm("--json", "grep", "boats", "--conversation-ids", f"{a}, {b}", "--roles", f"@{tmp_path}/roles").json
    one_by_one = api.get("matches/", query="boats", conversation_ids=[a, b], roles=["user", "tool"]).body

    assert sorted(match["conversation_id"] for match in by_commas["items"]) == [a, b]
    assert by_commas == as_json == in_a_file == one_by_one


def test_what_is_no_list_is_said_once_and_a_list_not_as_a_text(boats):
    api = Api(an_api_key(None, "read"))

    twice = api.get("matches/", query=["boats", "harbour"])
    as_text = api.post("expand-queries/", {"question": "x", "ids": "sum_1"})

    assert (twice.status, twice.body["code"]) == (400, "invalid_params")
    assert (as_text.status, as_text.body["detail"]) == (400, "ids: This must be a list, not a text.")


def test_a_moment_may_be_said_in_any_form_of_iso_8601(boats):
    for moment in ("2020-01-01", "2020-01-01T12:00:00Z", "2020-01-01T12:00:00", "2020-01-01T12:00:00.5+02:00"):
        assert len(lcm("--json", "grep", "boats", "--since", moment).json["items"]) == 3, moment


def test_what_is_no_moment_is_refused(boats):
    for moment in ("yesterday", "", "2020-13-01", "0001-01-01T00:00:00+14:00", "12"):
        refused = lcm("--json", "grep", "boats", f"--since={moment}")

        assert (refused.exit_code, refused.problem["code"]) == (2, "invalid_params"), moment
        assert list(refused.problem["errors"]) == ["since"]


def test_a_page_on_a_terminal_says_how_to_go_on(boats):
    first = lcm("grep", "boats", "--limit", "2")
    cursor = first.out.rpartition("--cursor=")[2].strip()

    rest = lcm("grep", "boats", f"--cursor={cursor}")

    assert rest.exit_code == 0, rest.err
    assert "1 match" in rest.out
    assert "--cursor" not in rest.out


def test_the_index_of_trigrams_is_the_operators(boats):
    status = lcm("--json", "trigram-index", "status")
    refused = lcm("--json", "--api-key", an_api_key(a_workspace(), "admin"), "trigram-index", "drop")

    assert status.json["state"] == "absent"
    assert refused.problem["code"] == "forbidden"


def test_where_there_is_no_pg_trgm_the_command_says_so():
    if trigrams.status(RetrievalPolicy()).available:
        pytest.skip("this PostgreSQL has pg_trgm")

    refused = lcm("--json", "trigram-index", "build")

    assert refused.problem["code"] == "no_pg_trgm"
    assert "no contrib modules" in refused.problem["detail"]
