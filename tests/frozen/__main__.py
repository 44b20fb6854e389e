"""`make frozen`: write the outward faces anew."""

from __future__ import annotations

from pathlib import Path

from tests.scratch_database import scratch_database

FACES = Path(__file__).parent / "faces"


def main() -> None:
    with scratch_database():
        # Django is set up now.
        from tests.frozen.faces import faces

        for name, text in faces().items():
            (FACES / name).write_text(text)


if __name__ == "__main__":
    main()
