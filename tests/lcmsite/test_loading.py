"""How a process begins."""

from __future__ import annotations

import subprocess
import sys

LARGE_READ = """
import gc, sys
from lcmsite.loading import loading
with loading():
    import json
looks = sum(each["collections"] for each in gc.get_stats())
kept = [{"text": str(number)} for number in range(10_000) for part in ({"of": number},)]
print(gc.isenabled(), gc.get_freeze_count() > 1000, sum(each["collections"] for each in gc.get_stats()) - looks)
"""


def test_while_ten_thousand_records_are_made_hardly_anybody_looks_for_garbage():
    told = subprocess.run([sys.executable, "-c", LARGE_READ], capture_output=True, text=True, check=True).stdout.split()

    is_enabled, is_frozen, looks = told
    assert (is_enabled, is_frozen) == ("True", "True")
    assert int(looks) <= 2
