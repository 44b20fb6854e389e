"""How much memory the server keeps the pages of tables and indexes in. What it reads again, it then has at hand."""

import os
from pathlib import Path

# Of a machine that runs everything else of LCM, too; no less than PostgreSQL takes by itself, and no more than the
# newest messages of long histories and the index for words need.
_PART = 8
_LEAST, _MOST = 128, 1024

# What the group of processes that we are in may use, by either version of the kernel's accounting: a container's bound.
_BOUNDS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def shared_buffers(memory: int) -> str:
    """The setting, for so many bytes of memory."""
    return f"{min(_MOST, max(_LEAST, memory // _PART // 2**20))}MB"


def usable_memory(bounds: tuple[Path, ...] = _BOUNDS) -> int:
    """How many bytes this machine has, or may be used of it."""
    told = [file.read_text().strip() for file in bounds if file.is_file()]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(int(bound) for bound in told if bound.isdecimal())])
