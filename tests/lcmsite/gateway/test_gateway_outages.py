"""Agents go on while the database is slow or away, or the disk is full; nothing is missing afterwards."""

import time

import pytest
from django.db import connection, transaction

from lcmsite.access import keys
from lcmsite.gateway.surfaces import Surface
from lcmsite.models import ApiKey
from tests.lcmsite.gateway.sessions import PATHS, SESSION, body_of, mine, rendered, user, words
from tests.lcmsite.gateway.test_gateway import recorded
from tests.lcmsite.gateway.upstream import answering
from tests.lcmsite.operating import eventually

PATH = PATHS[Surface.CHAT]
CLOSED = {"x_lcm_fail_closed": "true"}


def exchanges(gateway, *texts, rows=(), **headers):
    """A session of these turns; its history, and what the gateway says of each."""
    rows, states = list(rows), []
    for text in texts:
        rows.append(user(text))
        whole = rendered(Surface.CHAT, f"Answer to {text[:9]}.").whole()
        gateway.upstream.reply = answering(whole)
        answer = gateway.ask(PATH, body_of(Surface.CHAT, rows), **headers)
        assert answer.json() == whole
        rows.append(whole["choices"][0]["message"])
        states.append(answer.headers["x-lcm-status"])
    return rows, states


def is_replayed(gateway, count):
    eventually(lambda: not list(gateway.spool.glob("*.exchange")), seconds=60)
    return recorded(gateway, count)


def test_what_passes_while_the_database_is_away_is_spooled_without_credentials_and_recorded_afterwards(gateway):
    rows, _ = exchanges(gateway, "One")
    recorded(gateway, 2)
    gateway.relay.cut()

    names = ("authorization", "cookie", "x_litellm_api_key", "x_openai_api_key", "x_session_token")
    rows, states = exchanges(gateway, "Two", "Three", rows=rows, **dict.fromkeys(names, "vendor-secret"))
    eventually(lambda: len(list(gateway.spool.glob("*.exchange"))) == 2, seconds=20)
    kept = "".join(path.read_text() for path in gateway.spool.glob("*.exchange"))
    # Held up by nothing once it is known.
    began = time.monotonic()
    rows, later = exchanges(gateway, "Four", rows=rows)
    took = time.monotonic() - began
    eventually(lambda: len(list(gateway.spool.glob("*.exchange"))) == 3, seconds=20)
    gateway.relay.mend()

    assert "Two" in kept and SESSION in kept
    assert "vendor-secret" not in kept and gateway.key not in kept
    assert is_replayed(gateway, 8) == [
        each for text in ("One", "Two", "Three", "Four") for each in (text, f"Answer to {text}.")
    ]
    assert {each.partition(";")[0] for each in [*states, *later]} <= {"recording", "degraded"}
    assert later == ["degraded; reason=database"] and took < 2
    assert mine(gateway).moves == 0
    rows, _ = exchanges(gateway, "Five", rows=rows)
    assert recorded(gateway, 10)[-2:] == ["Five", "Answer to Five."]


def test_a_slow_database_holds_nobody_up(gateway):
    exchanges(gateway, "One")
    recorded(gateway, 2)
    whole = rendered(Surface.CHAT, "Slowly.").whole()

    def later(handler):
        time.sleep(0.3)
        answering(whole)(handler)

    gateway.upstream.reply = later
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE gateway_exchanges, conversations IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        answer = gateway.ask(PATH, body_of(Surface.CHAT, [user("Other")]))
        took = time.monotonic() - began

    assert (answer.json(), answer.headers["x-lcm-status"]) == (whole, "degraded; reason=slow")
    assert took < 3
    assert recorded(gateway, 4)[-2:] == ["Other", "Slowly."]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("surface", Surface)
def test_who_must_not_lose_a_word_is_refused_while_it_cannot_be_recorded(gateway, surface):
    exchanges(gateway, "One")
    recorded(gateway, 2)
    gateway.relay.cut()

    answer = gateway.ask(PATHS[surface], body_of(surface, [user("Two")]), **CLOSED)
    gateway.relay.mend()

    assert (answer.status_code, answer.headers["x-lcm-status"]) == (503, "refused; reason=unavailable")
    assert "could not record" in answer.json()["error"]["message"]
    assert len(gateway.upstream.requests) == 1
    body = body_of(Surface.CHAT, [user("Three")])
    eventually(lambda: gateway.ask(PATH, body, **CLOSED).headers["x-lcm-status"] == "recorded", seconds=30)
    assert "Two" not in words(mine(gateway), active=False)


@pytest.mark.parametrize("size", [10, 2 * 1024**2], ids=["no disk", "over the bound"])
def test_a_full_disk_is_survived(gateway, size):
    exchanges(gateway, "One")
    recorded(gateway, 2)
    gateway.relay.cut()
    if size == 10:
        # As where nothing can be written: not even the directory can be made.
        if gateway.spool.exists():
            for each in gateway.spool.iterdir():
                each.rmdir() if each.is_dir() else each.unlink()
            gateway.spool.rmdir()
        gateway.spool.parent.mkdir(exist_ok=True)
        gateway.spool.touch()

    _, states = exchanges(gateway, "Two", "x" * size)
    eventually(lambda: gateway.log.read_text().count("gateway_spool_refused") >= (2 if size == 10 else 1), seconds=20)
    gateway.relay.mend()

    found = is_replayed(gateway, 6) if size != 10 else recorded(gateway, 6)
    if size == 10:
        gateway.spool.unlink()
    # As itself, or in the file that a long text becomes.
    assert ("x" * size if size == 10 else f'bytes="{size}"') in " ".join(words(mine(gateway), active=False))
    assert "Two" in words(mine(gateway), active=False) and len(found) == 4
    gateway.log.write_text("")


def test_an_exchange_of_an_invalid_key_is_put_aside_when_that_is_known(gateway):
    exchanges(gateway, "One")
    recorded(gateway, 2)
    valid = gateway.key
    gateway.relay.cut()
    exchanges(gateway, "Two")
    gateway.key = "lcm_" + "unknown" * 6

    exchanges(gateway, "Three")
    gateway.key = valid
    eventually(lambda: len(list(gateway.spool.glob("*.exchange"))) == 2, seconds=20)
    gateway.relay.mend()

    eventually(lambda: list(gateway.spool.glob("rejected/*")), seconds=30)
    assert "Three" not in words(mine(gateway), active=False)


def test_a_revoked_key_is_refused(gateway):
    exchanges(gateway, "One")
    recorded(gateway, 2)
    row = ApiKey.objects.get(prefix=gateway.key[:12])
    keys.revoke(keys.EVERYTHING, key=str(row.pk))
    time.sleep(keys.SECONDS_CACHED)

    answer = gateway.ask(PATH, body_of(Surface.CHAT, [user("Two")]))

    assert answer.status_code == 401
