"""What the sample's agent answers: put together from docstrings, signatures and imports. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.humanize import counted
from lcmsite.sample.code_base import CodeBase, CodeFile, Definition, Knob

MOST_NAMES = 12


def overview(code: CodeBase, rooms: Sequence[str]) -> str:
    lines = []
    for room in rooms:
        files = code.below(room)
        readme = code.file(f"{room}/README.md")
        about = f": {readme.doc}" if readme else ""
        size = f"{counted(len(files), 'file')}, {counted(sum(len(file.lines) for file in files), 'line')}"
        lines.append(f"- `{room}/`{about} ({size})")
    return "\n".join(
        ["These are the rooms:", *lines, "Each module begins with the promise it keeps; begin with those."]
    )


def about_file(code: CodeBase, file: CodeFile) -> str:
    importers = code.importers(file)
    defined = [each for each in file.definitions if each.kind != "method" and each.is_public]
    return "\n\n".join(
        text
        for text in (
            f"`{file.path}` has {counted(len(file.lines), 'line')}. In its own words: {file.doc}",
            "It defines:\n" + "\n".join(map(_line_about, defined)) if defined else "It defines nothing public.",
            f"It is imported by {_listed(importers)}." if importers else "Nothing imports it by its full name.",
        )
        if text
    )


def about_definition(code: CodeBase, file: CodeFile, definition: Definition) -> str:
    name = definition.name.split(".")[-1]
    callers = [each.path for each in code.files if each is not file and f"{name}(" in each.text and not each.is_test]
    signature = f"({definition.signature})" if definition.signature or definition.kind != "class" else ""
    return "\n\n".join(
        [
            f"`{definition.name}` is a {definition.kind} in `{file.path}`, lines {definition.line} to "
            f"{definition.last_line}: `{name}{signature}`.",
            f"Its docstring says: {definition.doc}",
            f"It calls {_listed(definition.calls)}." if definition.calls else "It calls nothing.",
            f"It raises {_listed(definition.raises)} itself." if definition.raises else "It raises nothing itself.",
            f"A call by that name stands in {_listed(callers)}." if callers else "No other file calls it by name.",
        ]
    )


def about_tests(file: CodeFile, tests: CodeFile) -> str:
    names = [each.name for each in tests.definitions if each.name.startswith("test_")]
    sentences = [name.removeprefix("test_").replace("_", " ") for name in names]
    return f"`{tests.path}` holds {file.path} to {counted(len(names), 'sentence')}:\n" + "\n".join(
        f"- {sentence}" for sentence in sentences
    )


def about_tables(file: CodeFile) -> str:
    lines = [f"- `{table}`: {', '.join(columns)}" for table, columns in file.tables.items()]
    return "\n".join([f"`{file.path}` makes {counted(len(lines), 'table')}:", *lines])


def about_slip(wrong: str, file: CodeFile) -> str:
    size = counted(len(file.lines), "line")
    return f"There is no `{wrong}`. You may mean `{file.path}`, which has {size}: {_first(file.doc)}"


def another_value(knob: Knob) -> str | None:
    """A value that somebody might want instead of the default; None where there is no telling."""
    if knob.default in ("True", "False"):
        return str(knob.default == "False")
    try:
        number = float(knob.default)
    except ValueError:
        return None
    return f"{number * 0.8:.2f}" if "." in knob.default else str(int(number) * 2 or 1)


def about_wish(file: CodeFile, knob: Knob, other: str) -> str:
    return (
        f"Noted: `{knob.name}` = {other} on staging. `{file.path}` declares it with the default {knob.default}: "
        f"{knob.help} In the environment it is called `LCM_{knob.name.upper()}`."
    )


def about_wishes(wishes: Sequence[tuple[Knob, str]]) -> str:
    if not wishes:
        return "Nothing so far."
    lines = [f"- `LCM_{knob.name.upper()}={other}` instead of {knob.default}" for knob, other in wishes]
    return "\n".join(["For the staging machine you want:", *lines])


def _line_about(definition: Definition) -> str:
    return (
        f"- {definition.kind} `{definition.name}`, line {definition.line}: {_first(definition.doc) or 'no docstring'}"
    )


def _first(doc: str) -> str:
    return doc.split("\n\n")[0].replace("\n", " ")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
    left_out = len(names) - MOST_NAMES
    return f"{shown} and {left_out} more" if left_out > 0 else shown
