"""Run parsers of PDF, HTML and images in a subprocess with limits."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from conversations.files.exploration.glance import MOST_LINES, cut
from conversations.humanize import counted

SECONDS = 5
MEMORY_BYTES = 1024**3
MOST_INPUT_BYTES = 32 * 1024 * 1024
HTML_BYTES = 256 * 1024
_ROOT = Path(__file__).resolve().parents[3]


class NotReadable(Exception):
    """The parser failed or timed out."""


def run_parser(kind: str, content: bytes) -> list[str]:
    """Return the lines of an explorer; NotReadable if it fails or times out."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__, kind],
            input=content[:MOST_INPUT_BYTES],
            capture_output=True,
            timeout=SECONDS,
            cwd=_ROOT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotReadable(f"its parser timed out after {SECONDS} seconds") from None
    if done.returncode != 0:
        raise NotReadable(done.stderr.decode("utf-8", "replace").strip().split("\n")[-1][:200] or "its parser died")
    return done.stdout.decode("utf-8", "replace").split("\n")[:MOST_LINES]


def _html(content: bytes) -> Iterator[str]:
    from html.parser import HTMLParser

    class Headings(HTMLParser):
        """Collects title and headings, and counts the other elements."""

        def __init__(self) -> None:
            super().__init__()
            self.found: list[tuple[str, str]] = []
            self.counts: dict[str, int] = {}
            self.inside = ""

        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag in ("title", "h1", "h2", "h3", "h4", "h5", "h6"):
                self.inside = tag
                self.found.append((tag, ""))
            elif tag in _COUNTED:
                self.counts[tag] = self.counts.get(tag, 0) + 1

        def handle_endtag(self, tag: str) -> None:
            if tag == self.inside:
                self.inside = ""

        def handle_data(self, data: str) -> None:
            if self.inside:
                tag, text = self.found[-1]
                self.found[-1] = (tag, text + data)

    page = Headings()
    page.feed(content[:HTML_BYTES].decode("utf-8", "replace"))
    counts = [counted(page.counts[tag], noun) for tag, noun in _COUNTED.items() if tag in page.counts]
    if counts:
        yield ", ".join(counts)
    for tag, text in page.found:
        depth = 0 if tag == "title" else int(tag[1]) - 1
        yield f"{'title: ' if tag == 'title' else '  ' * depth}{cut(' '.join(text.split()), 120)}"


_COUNTED = {"p": "paragraph", "table": "table", "a": "link", "img": "image", "form": "form", "script": "script"}


def _pdf(content: bytes) -> Iterator[str]:
    import logging

    import pypdf

    # pypdf's warnings about broken files are not wanted.
    logging.disable(logging.CRITICAL)
    reader = pypdf.PdfReader(io.BytesIO(content), strict=False)
    if reader.is_encrypted:
        yield "encrypted"
        return
    yield counted(len(reader.pages), "page")
    for name, value in list((reader.metadata or {}).items())[:12]:
        yield f"{str(name).removeprefix('/')}: {cut(' '.join(str(value).split()), 120)}"
    text = " ".join((reader.pages[0].extract_text() if len(reader.pages) else "").split())
    if text:
        yield f"begins: {cut(text, 500)}"


def _image(content: bytes) -> Iterator[str]:
    import warnings

    from PIL import ExifTags, Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    # Only the header is read, and nothing decoded.
    with Image.open(io.BytesIO(content), formats=("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")) as picture:
        yield f"{picture.format}, {picture.width:,} × {picture.height:,} pixels, {picture.mode}"
        # To read the EXIF data of a PNG, Pillow would decode the image.
        facts = picture.getexif() if picture.format in ("JPEG", "TIFF", "WEBP") else {}
        for tag, value in list(facts.items())[:20]:
            if ExifTags.TAGS.get(tag) in ("Make", "Model", "DateTime", "Software", "ImageDescription", "Artist"):
                yield f"{ExifTags.TAGS[tag]}: {cut(' '.join(str(value).split()), 120)}"


_EXPLORERS: dict[str, Callable[[bytes], Iterator[str]]] = {"html": _html, "pdf": _pdf, "image": _image}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    # This process has its own time limit, in case the parent died.
    resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
    found = islice(_EXPLORERS[sys.argv[1]](sys.stdin.buffer.read()), MOST_LINES)
    lines = [line.replace("\n", " ") for line in found]
    sys.stdout.buffer.write("\n".join(lines).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
