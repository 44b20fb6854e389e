"""API keys: who is let in, to what, and who is not."""

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.errors import Invalid, Unauthenticated
from conversations.scope import Scope
from lcmsite.access import keys
from lcmsite.access.keys import caller_of
from lcmsite.models import ApiKey
from lcmsite.types import KeyScope
from tests.factories import a_workspace
from tests.lcmsite.callers import an_api_key
from tests.statements import counted_statements, execute

pytestmark = pytest.mark.django_db


def test_the_key_itself_is_not_stored():
    key = an_api_key()

    row = ApiKey.objects.get()

    assert key.startswith(row.prefix)
    assert len(row.prefix) == 12
    assert key.encode() not in bytes(row.key_hash)
    assert key not in str(row.__dict__)


@pytest.mark.parametrize("key", ["", "lcm_", "lcm_wrong", "Bearer", "lcm_" + "x" * 10_000, "lcm_\udcff", "lcm_\x00"])
def test_a_wrong_key_is_refused_without_a_hint(key):
    an_api_key()

    with pytest.raises(Unauthenticated) as refusal:
        caller_of(key)

    assert refusal.value.code == "unauthenticated"
    assert refusal.value.detail == "This is not a valid API key."


def test_a_revoked_key_is_refused_at_once_and_for_good(clock):
    key = an_api_key()
    caller_of(key)

    first = keys.revoke(Scope(), key=key)
    second = keys.revoke(Scope(), key=ApiKey.objects.get().prefix)

    assert first.revoked_at == second.revoked_at is not None
    with pytest.raises(Unauthenticated) as refusal:
        caller_of(key)
    assert refusal.value.code == "key_revoked"


def test_a_use_is_recorded_once_a_minute():
    key = an_api_key()
    with counted_statements() as first:
        caller_of(key)
    used_at = ApiKey.objects.get().last_used_at
    keys.forget_callers()

    with counted_statements() as second:
        caller_of(key)

    assert ApiKey.objects.get().last_used_at == used_at is not None
    assert (len(first), len(second)) == (2, 1)

    ApiKey.objects.update(last_used_at=used_at - timedelta(seconds=61))
    keys.forget_callers()
    caller_of(key)
    assert ApiKey.objects.get().last_used_at > used_at - timedelta(seconds=61)


@pytest.mark.parametrize(
    ("lasts", "seconds", "is_cached"), [(None, 0.9, True), (None, 1.1, False), (3600, 0.9, True), (0.2, 0.1, False)]
)
def test_a_caller_is_cached_for_a_second_unless_the_key_expires_within_it(lasts, seconds, is_cached, clock):
    key = an_api_key()
    if lasts is not None:
        ApiKey.objects.update(expires_at=timezone.now() + timedelta(seconds=lasts))
    caller_of(key)
    clock.moment += seconds

    with counted_statements() as statements:
        caller_of(key)

    assert (not statements) == is_cached


@pytest.mark.parametrize("options", [{"scopes": ["root"]}, {"scopes": []}, {"name": ""}, {"name": "a\nb"}])
def test_a_key_that_makes_no_sense_is_not_made(options):
    with pytest.raises(Invalid):
        keys.issue(**{"workspace_id": a_workspace().pk, "name": "x", **options})

    assert not ApiKey.objects.exists()


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic bGNtOmxjbQ==", "lcm_x", "Bearer lcm_x"])
def test_rest_refuses_whoever_has_no_valid_key(client, header):
    headers = {} if header is None else {"Authorization": header}

    response = client.get("/api/v1/conversations/", headers=headers)

    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert response.json()["code"] == "unauthenticated"


def test_a_key_is_accepted_while_the_database_is_read_only():
    key = an_api_key()
    execute("SET LOCAL transaction_read_only = on")

    assert caller_of(key).may(KeyScope.READ)
