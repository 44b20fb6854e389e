"""How much there is: lines, files, folders, settings."""

from __future__ import annotations

from collections import Counter

from tests.architecture.house.sources import PROJECT, Count, lines, name, python_files, sql_files

# A package's door, and what its folder is for, are no files to look for something in.
DOORS = {"__init__.py", "README.md"}
SHORT = 40


def product_lines() -> Count:
    """Of all Python files of the product, migrations and `manage.py` among them."""
    return Count(sum(map(lines, python_files())))


def product_files() -> Count:
    """The same files, those that are empty among them."""
    return Count(len(python_files()))


def largest_folder() -> Count:
    """Python and SQL files that lie side by side, without `__init__.py` and migrations."""
    folders = _folders()
    sizes = sorted(((count, folder) for folder, count in folders.items()), reverse=True)
    return Count(sizes[0][0], tuple(f"{folder}: {count}" for count, folder in sizes[:12]))


def folders_over_15() -> Count:
    return Count.each([f"{folder}: {count}" for folder, count in _folders().items() if count > 15])


def short_files() -> Count:
    """Modules of under 40 lines, without `__init__.py`, migrations and commands of Django's."""
    short = [path for path in python_files() if lines(path) < SHORT and path.name not in DOORS]
    apart = {"migrations", "commands"}
    return Count.each([f"{name(path)}: {lines(path)}" for path in short if path.parent.name not in apart])


def long_files() -> Count:
    """Modules past 400 lines hold two things."""
    return Count.each([f"{name(path)}: {lines(path)}" for path in python_files() if lines(path) > 400])


def fast_lines() -> Count:
    """The one folder where speed may decide how something is written."""
    files = (PROJECT / "conversations" / "fast").glob("*.py")
    return Count(sum(map(lines, files)))


def test_lines() -> Count:
    return Count(sum(map(lines, (PROJECT / "tests").rglob("*.py"))))


def settings() -> Count:
    """Names of the environment that the site reads."""
    from lcmsite.environment import variables

    return Count(len(variables()))


def _folders() -> Counter[str]:
    files = [path for path in (*python_files(), *sql_files()) if path.name not in DOORS]
    return Counter(name(path.parent) for path in files if path.parent.name != "migrations")
