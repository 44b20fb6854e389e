"""Outline source code: imports, classes and functions with their lines. Pure.

Python is parsed. Other languages are read by a lexer, which finds names of functions and classes but no nesting.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Keyword, Name
from pygments.util import ClassNotFound

from conversations.files.exploration.glance import Seen, cut, shortened

# Lexers try regular expressions in turn, and are slow on minified lines.
LEXED_CHARACTERS = 128 * 1024
LONGEST_LINE = 1000
# Some lexers mark the names that are defined, others only the keywords before the names.
_DEFINING = frozenset(
    ("class", "struct", "interface", "trait", "impl", "enum", "type", "module", "namespace", "function", "func", "fn",
     "def", "sub", "proc", "procedure", "create")
)  # fmt: skip


_NAMES = (Name.Class, Name.Function, Name.Namespace)


def explore_code(seen: Seen) -> list[str]:
    text = seen.text or ""
    lexer = _lexer(seen.file_name, text)
    language = lexer.name if lexer is not None else "an unknown language"
    outline: list[str] = []
    if language == "Python" and seen.is_whole:
        try:
            with warnings.catch_warnings():
                # The parser warns of invalid escapes in the file.
                warnings.simplefilter("ignore")
                outline = list(_python(ast.parse(text)))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as wrong:
            line = getattr(wrong, "lineno", None)
            outline = [f"it does not parse{f' (line {line})' if line else ''}"]
    if lexer is not None and (language != "Python" or not seen.is_whole):
        outline = list(_lexed(seen, lexer))
    if not outline:
        outline = [cut(line) for line in text.split("\n") if line.strip()][:10]
    return [language, *shortened(outline, "line")]


def _lexer(file_name: str, text: str) -> Lexer | None:
    try:
        if text.startswith("#!"):
            line = text[:200].partition("\n")[0]
            language = next((each for each in ("python", "bash", "node", "perl", "ruby") if each in line), "sh")
            return get_lexer_by_name("javascript" if language == "node" else language)
        return get_lexer_for_filename(file_name.replace("\\", "/").rpartition("/")[2])
    except ClassNotFound:
        return None


def _python(tree: ast.Module) -> Iterator[str]:
    docstring = ast.get_docstring(tree)
    if docstring:
        yield f'"""{cut(docstring.partition(chr(10))[0])}"""'
    names = [alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "." for node in tree.body if isinstance(node, ast.ImportFrom)]
    if names:
        yield cut(f"imports {', '.join(dict.fromkeys(names))}")
    yield from _definitions(tree.body, depth=0)


def _definitions(body: list[ast.stmt], *, depth: int) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            bases = ", ".join(ast.unparse(base) for base in node.bases[:5])
            head = f"class {node.name}{f'({bases})' if bases else ''}"
            yield f"{node.lineno}: {'  ' * depth}{cut(head)}"
            if depth < 2:
                yield from _definitions(node.body, depth=depth + 1)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            words = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            given = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            head = f"{words} {node.name}({', '.join(given[:12])})"
            yield f"{node.lineno}: {'  ' * depth}{cut(head)}"


def _lexed(seen: Seen, lexer: Lexer) -> Iterator[str]:
    text = (seen.text or "")[:LEXED_CHARACTERS]
    starts = text.split("\n")
    if any(len(line) > LONGEST_LINE for line in starts):
        yield "minified or generated: its lines are too long"
        return
    line = 1
    shown: set[tuple[int, str]] = set()
    for kind, value in lexer.get_tokens(text):
        if seen.is_late:
            return
        is_definition = any(kind in each for each in _NAMES) or (kind in Keyword and value in _DEFINING)
        where = starts[line - 1].strip() if line <= len(starts) else ""
        # The whole line is shown: in every language it is more useful than the name.
        if is_definition and where and (line, where) not in shown:
            shown.add((line, where))
            yield f"{line}: {cut(where, 120)}"
        line += value.count("\n")
