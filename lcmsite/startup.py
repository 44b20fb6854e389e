"""Starting fast, and staying so: what a process loads before it begins is no garbage, and is never looked through."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# How many more records there must be than before, until somebody looks whether some are held by nothing but each other.
# Python would look after 700, hundreds of times in one large read, and up to a third of its time went into that; the
# largest page of an expansion has some 45,000. What gathers between two looks is a few MB at most.
_RECORDS_BETWEEN_LOOKS = 50_000


@contextmanager
def loading() -> Iterator[None]:
    """Within, modules are loaded without a look for garbage; what is there afterwards counts as there to stay.

    A third of a start went into that look, and later a fifth of the time of a large read.
    """
    gc.disable()
    try:
        yield
    finally:
        settled()
        gc.enable()


def settled() -> None:
    """What there is stays, and is not looked through any more; what comes is looked through now and then."""
    gc.freeze()
    gc.set_threshold(_RECORDS_BETWEEN_LOOKS, *gc.get_threshold()[1:])


@contextmanager
def without(*modules: str) -> Iterator[None]:
    """Within, these modules count as not installed: a library that would offer what it can do with them does without.

    Nobody here asks for that, and yet every process would load them: a tenth of its start and of its memory.
    """
    absent = dict.fromkeys(module for module in modules if module not in sys.modules)
    sys.modules.update(absent)  # type: ignore[arg-type]  # None is how Python notes that a module is not to be had
    try:
        yield
    finally:
        for module in absent:
            del sys.modules[module]
