"""Count lines, files, folders and settings."""

from __future__ import annotations

from collections import Counter

from tests.architecture.house.sources import PROJECT, Count, lines, name, python_files, sql_files

# Files that do not count as files of their folder.
DOORS = {"__init__.py", "README.md"}
SHORT = 40


def product_lines() -> Count:
    """Lines of all Python files of the product, with migrations and `manage.py`."""
    return Count(sum(map(lines, python_files())))


def product_files() -> Count:
    """The number of these files, with empty ones."""
    return Count(len(python_files()))


def largest_folder() -> Count:
    """The most Python and SQL files in a folder, without `__init__.py`, migrations."""
    folders = _folders()
    sizes = sorted(((count, folder) for folder, count in folders.items()), reverse=True)
    return Count(sizes[0][0], tuple(f"{folder}: {count}" for count, folder in sizes[:12]))


def folders_over_15() -> Count:
    return Count.each([f"{folder}: {count}" for folder, count in _folders().items() if count > 15])


def short_files() -> Count:
    """Modules of under 40 lines, without `__init__.py`, migrations and commands."""
    short = [path for path in python_files() if lines(path) < SHORT and path.name not in DOORS]
    apart = {"migrations", "commands"}
    return Count.each([f"{name(path)}: {lines(path)}" for path in short if path.parent.name not in apart])


def long_files() -> Count:
    """Modules of over 400 lines, which should be divided; without migrations."""
    long = [path for path in python_files() if lines(path) > 400 and path.parent.name != "migrations"]
    return Count.each([f"{name(path)}: {lines(path)}" for path in long])


def fast_lines() -> Count:
    """Lines of the only folder in which code may be written for speed."""
    files = (PROJECT / "conversations" / "fast").glob("*.py")
    return Count(sum(map(lines, files)))


def test_lines() -> Count:
    return Count(sum(map(lines, (PROJECT / "tests").rglob("*.py"))))


def settings() -> Count:
    """Environment variables that the site reads."""
    from lcmsite.environment import variables

    return Count(len(variables()))


def _folders() -> Counter[str]:
    files = [path for path in (*python_files(), *sql_files()) if path.name not in DOORS]
    return Counter(name(path.parent) for path in files if path.parent.name != "migrations")
