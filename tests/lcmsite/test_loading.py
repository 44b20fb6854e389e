"""How a process begins."""

from __future__ import annotations

import subprocess
import sys

BY_A_WORKER = """
import sys, django
django.setup()
import compaction.engine, compaction.background.worker
unneeded = {"greenlet", "markdown_it", "pydantic_core", "redis", "requests", "rich", "tiktoken", "urllib3", "yaml"}
print(*sorted({name.split(".")[0] for name in sys.modules} & unneeded))
print(*sorted(name for name in sys.modules if name.endswith(".admin") and name != "django.contrib.admin"))
"""
DOING_WITHOUT = """
from lcmsite.startup import without
with without("wave"):
    try:
        import wave
    except ImportError:
        print("away")
import wave
print("back", wave.__name__)
"""
LARGE_READ = """
import gc, sys
from lcmsite.startup import loading
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


def test_a_library_may_be_made_to_do_without_a_module_that_others_have_later():
    told = subprocess.run([sys.executable, "-c", DOING_WITHOUT], capture_output=True, text=True, check=True).stdout

    assert told.split() == ["away", "back", "wave"]


def test_a_worker_loads_no_pages_no_tokenizer_before_it_counts_and_nothing_that_it_never_needs():
    told = subprocess.run([sys.executable, "-c", BY_A_WORKER], capture_output=True, text=True, check=True).stdout

    assert told.split() == []
