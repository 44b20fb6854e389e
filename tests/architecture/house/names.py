"""Check the names of modules and the subjects of commits."""

from __future__ import annotations

import subprocess
from collections import defaultdict

from tests.architecture.house.sources import PROJECT, Count, name, python_files

# Names of modules that every room may have.
ANATOMY = {
    "__init__", "models", "querysets", "types", "errors", "policy", "tasks", "receivers", "signals", "observability",
    "params", "admin", "apps", "urls", "engine",
}  # fmt: skip
LONGEST_SUBJECT = 72


def shared_base_names() -> Count:
    """Base names that several modules have, without migrations and ANATOMY."""
    places = defaultdict(list)
    for path in python_files():
        if path.parent.name != "migrations":
            places[path.stem].append(name(path))
    shared = {stem: files for stem, files in places.items() if len(files) > 1 and stem not in ANATOMY}
    return Count.each([f"{stem}: {', '.join(files)}" for stem, files in shared.items()])


def long_subjects(since: str) -> Count:
    """Commit subjects of over 72 characters since a commit; none if git lacks it."""
    git = ["git", "-C", str(PROJECT), "log", "--no-merges", "--format=%h %s", f"{since}..HEAD"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    commits = (line.partition(" ") for line in done.stdout.splitlines()) if done.returncode == 0 else ()
    return Count.each([f"{hash} {subject}" for hash, _, subject in commits if len(subject) > LONGEST_SUBJECT])
