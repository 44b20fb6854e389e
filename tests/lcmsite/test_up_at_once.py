"""Two operators, or one in a hurry: two `lcm up` that start at the same moment do not get in each other's way."""

import re
import signal
import subprocess
import threading

import pytest

from tests.lcmsite.operating import free_port, processes_of


# In short: starters at once share one database (test_embedded), and a sample is loaded but once (test_sample).
@pytest.mark.thorough
def test_two_first_starts_at_once_announce_the_same_compacted_sample(up, fresh_dir):
    both = [up("--sample", "--port", str(free_port()), LCM_DATA_DIR=str(fresh_dir)) for _ in range(2)]

    said = [_until_announced(running) for running in both]

    for running in both:
        running.send_signal(signal.SIGTERM)
    for running in both:
        running.wait(timeout=60)
    announced = said[0][-1]
    stored, active = (int(number.replace(",", "")) for number in re.findall(r"\d+,\d+", announced))
    assert announced == said[1][-1]
    assert active < 0.7 * stored
    assert processes_of(fresh_dir) == []
    assert sum("Making the tables" in line for line in said[0] + said[1]) == 1
    assert all(len(lines) < 20 for lines in said), "the first start is quiet"


def _until_announced(running: "subprocess.Popen[str]") -> list[str]:
    """What it says until it has announced the sample."""
    # Nobody else reads it, and a full pipe would hold it up.
    threading.Thread(target=running.stderr.read, daemon=True).start()
    said = []
    while line := running.stdout.readline():
        said.append(line)
        if "active context" in line:
            return said
    raise AssertionError("It ended before it had announced the sample.")
