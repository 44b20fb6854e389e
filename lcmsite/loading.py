"""Starting fast, and staying so: what a process loads before it begins is no garbage, and is never looked through."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# How many more records there must be than before, until somebody looks whether some are held by nothing but each other.
# Python would look after 700, hundreds of times in one large read, and up to a third of its time went into that. What
# gathers between two looks is a few MB at most.
_RECORDS_BETWEEN_LOOKS = 25_000


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
