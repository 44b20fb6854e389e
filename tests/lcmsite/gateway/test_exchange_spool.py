"""The spool keeps exchanges over a crash, within bounds that nobody else can use up."""

import os
import resource
import time
from datetime import UTC, datetime, timedelta

import pytest

from lcmsite.gateway.recording import exchange_spool
from lcmsite.gateway.recording.exchange_spool import REJECTED_SECONDS, Spool, SpoolFull


@pytest.fixture
def spool(tmp_path):
    return Spool.below(tmp_path, most_bytes=100)


def add(spool, data, *, lane="a", seconds=0):
    spool.add(data, lane=lane, received_at=datetime.now(UTC) + timedelta(seconds=seconds))


def rejected(spool):
    return sorted(path.read_bytes() for path in spool.directory.glob("rejected/*"))


def test_exchanges_come_out_in_the_order_of_the_requests_and_no_more_than_fit(spool):
    for text, seconds in ((b"two" * 10, 1), (b"one" * 10, 0), (b"three", 2)):
        add(spool, text, seconds=seconds)

    with pytest.raises(SpoolFull):
        add(spool, b"x" * 36)

    assert [path.read_bytes() for path in spool.in_order()] == [b"one" * 10, b"two" * 10, b"three"]
    assert spool.size() == 65
    assert {oct(path.stat().st_mode & 0o777) for path in spool.in_order()} == {"0o600"}


def test_what_has_gone_makes_room_whoever_took_it(spool, monkeypatch):
    monkeypatch.setattr(exchange_spool, "SECONDS_BETWEEN_COUNTS", 0.1)
    for number in range(5):
        add(spool, b"%d" % number * 20)
    first, second, third, *_ = spool.in_order()

    spool.remove(first)
    add(spool, b"5" * 20)
    with pytest.raises(SpoolFull):
        add(spool, b"x")
    spool.reject(second)
    add(spool, b"6" * 20)
    third.unlink()
    time.sleep(0.1)
    add(spool, b"7" * 20)

    assert [path.read_bytes()[:1] for path in spool.in_order()] == [b"3", b"4", b"5", b"6", b"7"]


def test_what_was_put_aside_takes_no_room_and_is_bounded_by_itself(spool):
    for number in range(5):
        add(spool, b"%d" % number * 40)
        spool.reject(spool.in_order()[0])

    add(spool, b"x" * 100, lane="b")

    assert rejected(spool) == [b"3" * 40, b"4" * 40]
    assert (spool.size(), spool.rejected_size()) == (100, 80)


def test_what_was_put_aside_long_ago_goes(spool):
    for text in (b"old", b"new"):
        add(spool, text)
        [path] = spool.in_order()
        if text == b"old":
            os.utime(path, (0, time.time() - REJECTED_SECONDS - 1))
        spool.reject(path)

    assert rejected(spool) == [b"new"]


def test_what_does_not_fit_on_the_disk_leaves_no_file(spool):
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="too large"):
            add(spool, b"x" * 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))

    assert not [*spool.directory.iterdir()]


def test_what_a_killed_process_wrote_in_part_is_put_aside(spool):
    add(spool, b"whole")
    (spool.directory / "00000000000000000001-a-ffff.part").write_bytes(b"who" * 30)

    spool.open()
    add(spool, b"x" * 90)

    assert [path.read_bytes() for path in spool.in_order()] == [b"whole", b"x" * 90]
    assert rejected(spool) == [b"who" * 30]
