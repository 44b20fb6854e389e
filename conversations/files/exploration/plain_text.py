"""Describe logs, Markdown and plain text. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from markdown_it import MarkdownIt

from conversations.files.exploration.glance import Seen, cut, shortened
from conversations.humanize import counted

Gist = Callable[[str, int], str]

# Limits the parser's time for the worst text.
MARKDOWN_CHARACTERS = 48 * 1024
GIST_CHARACTERS = 64 * 1024
GIST_TOKENS = 400

LOG_LINES = 5
TEXT_LINES = 3
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|PANIC)\b", re.IGNORECASE)
_TIME = re.compile(r"\W{0,2}(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\w{3} [ \d]\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d)")
_ORDER = ("TRACE", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL")
_SAME = {"WARN": "WARNING", "FATAL": "CRITICAL", "PANIC": "CRITICAL"}
# How many characters at the beginning of a line are searched for its level.
LEVEL_WITHIN = 120


def looks_like_log(text: str) -> bool:
    """Whether most of the first lines begin with a time or have a level in capitals."""
    lines = [line[:LEVEL_WITHIN] for line in text[:20_000].split("\n")[:50] if line.strip()]
    if len(lines) < 3:
        return False
    like = sum(bool(_TIME.match(line) or ((found := _LEVEL.search(line)) and found[0].isupper())) for line in lines)
    return like > len(lines) / 2


def explore_log(seen: Seen) -> list[str]:
    lines = (seen.text or "").split("\n")
    lines = lines if seen.is_whole else lines[:-1]
    counts: Counter[str] = Counter()
    first_error = ""
    for line in lines:
        found = _LEVEL.search(line[:LEVEL_WITHIN])
        if found:
            level = found[0].upper()
            level = _SAME.get(level, level)
            counts[level] += 1
            if not first_error and level in ("ERROR", "CRITICAL"):
                first_error = line
        if seen.is_late:
            break
    of = "" if seen.is_whole else f" (in the first {counted(len(lines), 'line')})"
    levels = ", ".join(f"{level} {counts[level]:,}" for level in _ORDER if counts[level])
    described = [f"levels{of}: {levels}"] if levels else []
    if first_error:
        described.append(f"first error: {cut(first_error)}")
    return described + beginning_and_end(seen, LOG_LINES)


def beginning_and_end(seen: Seen, count: int) -> list[str]:
    """Return the first and the last lines, and the number between."""
    first = [line for line in (seen.text or "").split("\n") if line.strip()]
    if seen.is_whole and len(first) <= 2 * count:
        return [cut(line) for line in first]
    last = [line for line in seen.ending.split("\n")[0 if seen.is_whole else 1 :] if line.strip()] or [seen.ending]
    between = max(seen.lines - 2 * count, 0)
    gap = f"… {counted(between, 'line')} …" if between else "…"
    return [*(cut(line) for line in first[:count]), gap, *(cut(line) for line in last[-count:])]


def explore_markdown(seen: Seen) -> list[str]:
    text = (seen.text or "")[:MARKDOWN_CHARACTERS]
    parser = MarkdownIt("commonmark", {"maxNesting": 20})
    # Headings are blocks, so inline parsing is not needed.
    parser.core.ruler.disable("inline")
    tokens = parser.parse(text)
    headings = [
        f"{'  ' * (int(opening.tag[1]) - 1)}{cut(inside.content, 120)}"
        for opening, inside in zip(tokens, tokens[1:], strict=False)
        if opening.type == "heading_open"
    ]
    fences = sum(token.type == "fence" for token in tokens)
    described = [counted(fences, "code block")] if fences else []
    described += shortened(headings, "heading")
    if len(text) < len(seen.text or "") or not seen.is_whole:
        described.append(f"(headings of the first {len(text):,} characters)")
    return described if headings else described + beginning_and_end(seen, TEXT_LINES)


def explore_text(seen: Seen, gist: Gist | None) -> list[str]:
    """Show the beginning and the end, and `gist`'s summary of a long text."""
    described = beginning_and_end(seen, TEXT_LINES)
    text = seen.text or ""
    if gist is None or len(text) < 2000:
        return described
    # Only the beginning and the end of a very long text are summarized.
    half = GIST_CHARACTERS // 2
    material = text if len(text) <= GIST_CHARACTERS else f"{text[:half]}\n{seen.ending[-half:]}"
    summary = gist(material, GIST_TOKENS).strip()
    return described + (["in its own words:", *(cut(line, 400) for line in summary.split("\n"))] if summary else [])
