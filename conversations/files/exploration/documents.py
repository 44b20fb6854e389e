"""Markdown and HTML by their headings; plain text by its gist, or by how it begins and ends. Pure."""

from __future__ import annotations

from collections.abc import Callable

from markdown_it import MarkdownIt

from conversations.files.exploration import apart
from conversations.files.exploration.bounds import MOST_LINES, Deadline, cut, number
from conversations.files.exploration.glance import Seen
from conversations.files.exploration.log_files import beginning_and_end

Gist = Callable[[str, int], str]

# The parser takes a second over the worst text of this length.
MARKDOWN_CHARACTERS = 48 * 1024
GIST_CHARACTERS = 64 * 1024
GIST_TOKENS = 400
SHOWN_LINES = 3


def explore_markdown(seen: Seen, deadline: Deadline) -> list[str]:
    text = (seen.text or "")[:MARKDOWN_CHARACTERS]
    parser = MarkdownIt("commonmark", {"maxNesting": 20})
    # Headings are blocks; what is inside a paragraph is not asked for.
    parser.core.ruler.disable("inline")
    tokens = parser.parse(text)
    headings = [
        f"{'  ' * (int(opening.tag[1]) - 1)}{cut(inside.content, 120)}"
        for opening, inside in zip(tokens, tokens[1:], strict=False)
        if opening.type == "heading_open"
    ]
    fences = sum(token.type == "fence" for token in tokens)
    told = [number(fences, "code block")] if fences else []
    more = len(headings) - MOST_LINES
    told += headings[:MOST_LINES] + ([f"… {number(more, 'heading')} more"] if more > 0 else [])
    if len(text) < len(seen.text or "") or not seen.is_whole:
        told.append(f"(headings of the first {len(text):,} characters)")
    return told if headings else told + beginning_and_end(seen, SHOWN_LINES)


def explore_html(seen: Seen, deadline: Deadline) -> list[str]:
    lines = apart.ask("html", seen.head)
    return lines or ["no title and no headings"]


def text_explorer(gist: Gist | None) -> Callable[[Seen, Deadline], list[str]]:
    """The explorer of plain text, with whoever can say what a long text says."""

    def explore(seen: Seen, deadline: Deadline) -> list[str]:
        told = beginning_and_end(seen, SHOWN_LINES)
        text = seen.text or ""
        if gist is None or len(text) < 2000:
            return told
        # The middle is left out where there is too much: a beginning and an end are what a text is told by.
        half = GIST_CHARACTERS // 2
        material = text if len(text) <= GIST_CHARACTERS else f"{text[:half]}\n{seen.ending[-half:]}"
        said = gist(material, GIST_TOKENS).strip()
        return [*told, "in its own words:", *(cut(line, 400) for line in said.split("\n"))] if said else told

    return explore
