"""`make frozen`: write the outward faces anew. With a directory behind it, write them and their texts there."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.scratch_database import scratch_database

FACES = Path(__file__).parent / "faces"


def main(arguments: list[str]) -> None:
    with scratch_database():
        # Django is set up now.
        from tests.frozen.faces import faces, texts

        directory = Path(arguments[0]) if arguments else FACES
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in (faces() | (texts() if arguments else {})).items():
            (directory / name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
