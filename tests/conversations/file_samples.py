"""One file of every kind, and files made to hurt whoever looks into them."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib

from PIL import Image
from pypdf import PdfWriter


def a_pdf() -> bytes:
    writer = PdfWriter()
    for _ in range(3):
        writer.add_blank_page(width=200, height=200)
    writer.add_metadata({"/Title": "Harbour plans", "/Author": "Ada"})
    target = io.BytesIO()
    writer.write(target)
    return target.getvalue()


def an_image(kind: str = "PNG") -> bytes:
    target = io.BytesIO()
    Image.new("RGB", (40, 30), "navy").save(target, kind)
    return target.getvalue()


def a_zip(entries: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target.getvalue()


def a_tar(entries: dict[str, bytes], mode: str = "w") -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


def a_zip_bomb() -> bytes:
    target = io.BytesIO()
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("zeros", "w") as entry,
    ):
        for _ in range(520):
            entry.write(bytes(1024 * 1024))
    return target.getvalue()


def a_gzip_bomb() -> bytes:
    """A packed tar archive with one long file of zeros."""
    megabytes = 100
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    info = tarfile.TarInfo("zeros")
    info.size = megabytes * 1024 * 1024
    pieces = [packer.compress(info.tobuf())]
    pieces += [packer.compress(bytes(1024 * 1024)) for _ in range(megabytes)]
    return b"".join([*pieces, packer.flush()])


def an_image_bomb() -> bytes:
    """A PNG whose header claims 100,000 by 100,000 pixels."""
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _png_chunk(b"IHDR", header) + _png_chunk(b"IDAT", zlib.compress(bytes(1000)))


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def a_zip_with_two_sizes(entries: int = 200_000) -> bytes:
    """The size in its last record is small; that in its zip64 record, which readers take, is large."""
    listed = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 0, 20, *[0] * 8, 1, *[0] * 6) + b"a"
    size = len(listed) * entries
    return b"".join(
        (
            b"PK\x03\x04",
            listed * entries,
            struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, entries, entries, size, 4),
            struct.pack("<4sLQL", b"PK\x06\x07", 0, 4 + size, 1),
            struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 100, 4, 0),
        )
    )


def a_tar_with_a_long_header() -> bytes:
    header = tarfile.TarInfo("a")
    header.type, header.size = tarfile.XHDTYPE, 512 * 80_000
    return header.tobuf(tarfile.USTAR_FORMAT) + b"6 a=b\n" * (header.size // 6) + bytes(2048)


def an_xml_of_many_attributes() -> bytes:
    names = "".join(f' a{number} CDATA ""' for number in range(20_000))
    return f"<?xml version='1.0'?><!DOCTYPE r [<!ATTLIST b{names}>]><r>{'<b/>' * 100_000}</r>".encode()


PEOPLE = [{"name": f"Ada {n}", "age": n, "tags": ["a"], "home": {"city": "Porto", "zip": None}} for n in range(50)]
YAML = "services:\n  web:\n    image: lcm\n    ports: [8000, 8001]\n  db:\n    image: postgres\nversion: 3\n"
PYTHON = '''"""Ships."""

import os
from pathlib import Path


class Ship(object):
    def sail(self, to, *, fast=False):
        return to

    async def dock(self):
        pass


def build(name):
    return Ship()
'''
JAVASCRIPT = (
    'import fs from "fs";\n\nclass Ship {\n  sail(to) { return to; }\n}\n\nfunction build(name) {\n  return 1;\n}\n'
)
MARKDOWN = "# Ships\n\nText.\n\n## Of the line\n\n```\ncode\n# no heading\n```\n\nSetext\n------\n"
HTML = (
    "<!DOCTYPE html><html><head><title>Ships &amp; more</title><script>var a = '<h1>no</h1>';</script></head>"
    "<body><h1>Ships</h1><p>x</p><h2>Of <b>the</b> line</h2><a href='#'>y</a></body></html>"
)
LOG = "".join(
    f"2026-01-01 10:00:{n % 60:02d},000 {'ERROR' if n == 70 else 'INFO'} worker: step {n} done\n" for n in range(200)
)
XML = '<?xml version="1.0"?><fleet><ship name="a"><mast/></ship><ship name="b"/></fleet>'

# name, content, and what its exploration must say of it
KINDS = {
    "JSON": ("people.json", json.dumps(PEOPLE).encode(), ["JSON, ", "list of 50", "age: whole number", "zip: nothing"]),
    "JSON Lines": (
        "people.jsonl",
        "\n".join(map(json.dumps, PEOPLE)).encode(),
        ["JSON Lines, ", "50 lines", "each line", "city: text"],
    ),
    "YAML": ("compose.yml", YAML.encode(), ["YAML, ", "services: object of 2 keys", "ports: list of 2", ": whole"]),
    "XML": ("fleet.xml", XML.encode(), ["XML, ", "fleet/ship × 2", "fleet/ship/mast"]),
    "CSV": (
        "ships.csv",
        b'name,built,"cost, net",sold\n"Ada, the first",1887,12.5,2026-01-31\nBob,1900,,2025-01-01\n',
        ["table, ", "2 rows, 4 columns", "built: whole number, such as 1887", "net: number, some empty", "sold: date"],
    ),
    "TSV": ("ships.tsv", b"a\tb\n1\tx\n2\ty\n", ["table, ", "2 rows, 2 columns", "a: whole number"]),
    "Python": ("ships.py", PYTHON.encode(), ["code, ", "Python", "imports os, pathlib", "7: class Ship(object)"]),
    "JavaScript": ("ships.js", JAVASCRIPT.encode(), ["code, ", "JavaScript", "3: class Ship {", "7: function build("]),
    "Markdown": ("ships.md", MARKDOWN.encode(), ["Markdown, ", "1 code block", "Ships\n", "  Of the line", "  Setext"]),
    "HTML": ("ships.html", HTML.encode(), ["HTML, ", "title: Ships & more", "Ships", "  Of the line", "1 link"]),
    "log": ("worker.log", LOG.encode(), ["log, ", "INFO 199, ERROR 1", "first error: 2026-01-01 10:00:10", "step 199"]),
    "PDF": ("plans.pdf", a_pdf(), ["PDF, ", "3 pages", "Title: Harbour plans", "Author: Ada"]),
    # Cut off behind its header: no picture is decoded.
    "image": ("ship.png", an_image()[:60], ["image, ", "PNG, 40 × 30 pixels, RGB"]),
    "JPEG": ("ship.jpg", an_image("JPEG"), ["image, ", "JPEG, 40 × 30 pixels"]),
    "zip": ("ships.zip", a_zip({"a/b": b"x" * 100, "c": b""}), ["zip archive, ", "2 entries, 100 bytes", "a/b (100)"]),
    "tar": ("ships.tar", a_tar({"a/b.txt": b"x" * 100}), ["tar archive, ", "1 entry, 100 bytes", "a/b.txt (100)"]),
    "tar.gz": ("ships.tgz", a_tar({"a/b": b"x"}, "w:gz"), ["gzip, ", "a tar archive, compressed", "a/b (1)"]),
    "gzip": ("ships.txt.gz", gzip.compress(b"first line\nsecond"), ["gzip, ", "a text, compressed", "first line"]),
    "text": ("notes.txt", b"One line.\nAnother, longer line.\n", ["text, ", "2 lines", "One line.", "Another"]),
    "binary": ("blob.bin", bytes(range(256)), ["binary, 256 bytes"]),
    "empty": ("empty.csv", b"", ["text, 0 bytes, 0 lines"]),
}

HOSTILE = {
    "zip bomb": ("bomb.zip", a_zip_bomb, ["Beware: it unpacks to", "as a zip bomb does"]),
    "gzip bomb": ("bomb.tgz", a_gzip_bomb, ["in the first 67,108,864 bytes"]),
    "image bomb": ("bomb.png", an_image_bomb, ["could not be explored", "10000000000 pixels"]),
    "path traversal in a zip": ("a.zip", lambda: a_zip({"../../etc": b"x", "/abs": b"y"}), ["2 names would leave"]),
    "path traversal in a tar": ("a.tar", lambda: a_tar({"../../etc/passwd": b"x"}), ["1 name would leave"]),
    "aliases of aliases": (
        "bomb.yaml",
        lambda: ("a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 60))).encode(),
        ["YAML", "object of 60 keys"],
    ),
    "deep YAML": ("deep.yaml", lambda: b"[" * 40_000, ["text, "]),
    "deep JSON": ("deep.json", lambda: b"[" * 900_000, [" bytes"]),
    "deep JSON that ends": ("deep.json", lambda: b'{"a":' * 100 + b"1" + b"}" * 100, ["JSON", "a: object of 1 key"]),
    "one line of JSON": (
        "long.json",
        lambda: json.dumps([{"id": n, "text": "word " * 20} for n in range(100_000)]).encode(),
        ["JSON, ", "1 line", "text: text"],
    ),
    "entities of entities": (
        "bomb.xml",
        lambda: (
            '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "lol">'
            + "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
            + "]><a>&l11;</a>"
        ).encode(),
        ["not explored: it declares entities"],
    ),
    "attributes of every element": ("a.xml", an_xml_of_many_attributes, ["not explored: it takes too long"]),
    "comments that never end": ("a.html", lambda: b"<!DOCTYPE html>" + b"<!--" * 60_000, ["HTML"]),
    "tags that never end": ("a.html", lambda: b"<!DOCTYPE html>" + b"<a " * 80_000, ["HTML"]),
    "nested lists": ("a.md", lambda: b"# a\n\n# b\n" + b"- a\n" * 20_000, ["Markdown"]),
    "parentheses": ("a.py", lambda: b"(" * 200_000, ["Python", "does not parse"]),
    "a sum without end": ("a.py", lambda: b"1+" * 100_000 + b"1", ["Python", "does not parse"]),
    "a minified script": ("a.js", lambda: b"function a(){return 1};" * 20_000, ["minified"]),
    "one cell without end": ("a.csv", lambda: b'a,b\n"' + b"x" * 900_000, [" bytes"]),
    "a broken PDF": ("a.pdf", lambda: b"%PDF-1.7\n" + b"1 0 obj<<" * 50_000, ["PDF", "could not be explored"]),
    "a broken zip": ("a.zip", lambda: b"PK\x03\x04" + bytes(1000), ["the file is incomplete"]),
    "a zip with a list that lies": ("a.zip", lambda: b"PK\x03\x04PK\x05\x06" + b"\xff" * 18, ["could not be explored"]),
    "a zip with two sizes": ("a.zip", a_zip_with_two_sizes, ["not listed: its directory is too long"]),
    "a long header in a tar": ("a.tar", a_tar_with_a_long_header, ["0 entries or more"]),
    "a gzip of nothing": ("a.gz", lambda: gzip.compress(b"") * 100_000, ["not listed: its headers are too long"]),
    "a broken tar": ("a.tar", lambda: bytes(257) + b"ustar" + b"9" * 300, [" bytes"]),
    "a broken gzip": ("a.gz", lambda: b"\x1f\x8b" + b"\xff" * 100, ["could not be explored"]),
    "a picture cut off": ("a.png", lambda: an_image()[:20], ["could not be explored"]),
}

# name, content, and what it is labelled as
LIES = {
    "a program called a picture": ("holiday.jpg", b"\x7fELF" + bytes(100), "image, but its content is program"),
    "a PDF called a table": ("sums.csv", a_pdf(), "table, but its content is PDF"),
    "a text called a PDF": ("plans.pdf", b"Not a PDF at all.", "PDF, but its content is not"),
    "a zip called a text": ("notes.txt", a_zip({"a": b"b"}), "text, but its content is zip archive"),
    "a page called a picture": ("cat.png", HTML.encode(), "image, but its content is HTML"),
    "bytes called JSON": ("a.json", b"\x00\x01\x02", "JSON, but its content is not"),
    "broken JSON": ("a.json", b'{"a": ', "JSON, but its content is not"),
}
