"""Django's secret key when nobody gave one: made once, kept in the data directory, the same for all processes."""

import os
import secrets
from pathlib import Path

from lcmsite.embedded_postgres.location import make_directory

FILE_NAME = "secret_key"


def kept_secret_key(data_dir: Path) -> str:
    """The key of this data directory; OSError if it can be neither read nor kept there."""
    kept = data_dir / FILE_NAME
    if not kept.exists():
        _offer(kept)
    return kept.read_text().strip()


def _offer(kept: Path) -> None:
    """Put a complete new key in place, unless another process was faster: then its key is everybody's."""
    make_directory(kept.parent)
    fresh = kept.with_name(f"{FILE_NAME}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
            file.flush()
            os.fsync(file.fileno())
        # A link, not a rename: it fails where a rename would replace the key that others already read.
        os.link(fresh, kept)
    except FileExistsError:
        return
    finally:
        fresh.unlink()
