"""Translate a regular expression from Python's syntax to PostgreSQL's; no I/O.

`^` and `$` match at every line, as with Python's (?m). `.` matches no newline, unless the pattern begins with (?s). At
the start, (?i) and (?x) are also accepted. Constructs without an equivalent in PostgreSQL are refused, with advice on
what to write instead. PostgreSQL validates the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from conversations.errors import Invalid

# A shorter literal excludes so few texts that checking it first is not useful.
SHORTEST_LITERAL = 3

_FLAGS = re.compile(r"\(\?(?P<flags>[a-zA-Z]*)(?P<off>-[a-zA-Z]*)?(?P<end>[:)])")
# A piece of a pattern. The method of `_Translation` with the name of the group translates it.
_PIECE = re.compile(
    r"""
      (?P<reference>\(\?P=(?P<name>\w+)\)|\\k[<{'](?P<other>\w+)[>}']|\\(?P<number>[1-9]\d*))
    | (?P<code>\\[xuU](?:\{[^}]*\}?|.{0,8}))
    | (?P<escape>\\.?)
    | (?P<brackets>\[\^?\]?)
    | (?P<comment>\(\?\#[^)]*\)?)
    | (?P<group>\(\?(?:P?<|')(?P<called>[A-Za-z_]\w*)[>']|\((?!\?))
    | (?P<inner>\(\?(?:<?[=!]|:))
    | (?P<refused>\(\?)
    | (?P<repeated>(?:[*+?]|\{(?=,?\d)\d*,?\d*\})(?:\?|(?P<possessive>\+))?)
    | (?P<special>[.^$|){])
    | (?P<character>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_BRACKETS = re.compile(r"(?P<named>\[:.*?:\])|(?P<code>\\[xuU](?:\{[^}]*\}?|.{0,8}))|(?P<escape>\\.?)|.", re.DOTALL)
_CODE = re.compile(r"\\(?P<style>[xuU])(?:\{(?P<braced>[0-9a-fA-F]+)\}|(?P<digits>[0-9a-fA-F]*))")
_DIGITS = {"x": 2, "u": 4, "U": 8}
# Escapes that mean the same in both syntaxes, and escapes that only PostgreSQL has, such as `\y` and `\m`.
_SAME = frozenset("dswDSWntrfvaeAZyYmM")
_SAME_IN_BRACKETS = frozenset("dswDSWntrfvaeb")
_OTHERWISE = {"b": r"\y", "B": r"\Y", "z": r"\Z"}
_UNKNOWN_GROUPS = {"(?>": "An atomic group (?>...)", "(?(": "A condition (?(...)...)", "(?R": "Recursion (?R)"}


@dataclass(frozen=True)
class Pattern:
    """An expression for PostgreSQL; `literal`, if known, is in every match."""

    expression: str
    literal: str | None = None


def translated(pattern: str) -> Pattern:
    """Translate a pattern; raises Invalid (`bad_pattern`) if there is no equivalent."""
    return _Translation(pattern).run()


def literally(text: str) -> Pattern:
    """Build a pattern for a literal text; it ignores case and amounts of white space."""
    words = (re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", word) for word in text.split())
    return Pattern("(?iw)" + r"\s+".join(words))


def pattern_error(sentence: str) -> Invalid:
    return Invalid(sentence, code="bad_pattern")


@dataclass
class _Translation:
    """One pass over a pattern, from left to right; each method translates one piece."""

    source: str
    place: int = 0
    out: list[str] = field(default_factory=list)
    # PostgreSQL's numbers of the groups, in Python's order; None inside a lookaround, which cannot be referenced.
    groups: list[int | None] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    # For each open parenthesis, whether it is a lookaround or inside one.
    open: list[bool] = field(default_factory=list)
    # The literal texts that every match contains. The last one may continue in the next piece.
    literals: list[str] = field(default_factory=lambda: [""])
    has_alternatives: bool = False
    # PostgreSQL's option `w`: ^ and $ match at every line, and classes such as [^a] match a newline, as in Python.
    options: str = "w"
    dot: str = r"[^\n]"

    def run(self) -> Pattern:
        self._leading_flags()
        while piece := _PIECE.match(self.source, self.place):
            kind = str(piece.lastgroup)
            self.place = piece.end()
            if kind not in ("code", "escape", "character"):
                self.literals.append("")
            getattr(self, f"_{kind}")(piece)
        longest = max(self.literals, key=len)
        is_certain = not self.has_alternatives and not set(self.options) & {"i", "x"}
        literal = longest if is_certain and len(longest) >= SHORTEST_LITERAL else None
        return Pattern(f"(?{self.options})" + "".join(self.out), literal)

    def _leading_flags(self) -> None:
        found = _FLAGS.match(self.source)
        if found is None or found["end"] != ")" or not found["flags"]:
            return
        if found["off"] or not set(found["flags"]) <= set("imsxu"):
            raise pattern_error(f"The flags {found[0]} are not supported; i, s, x and m are.")
        self.options += "".join(flag for flag in "ix" if flag in found["flags"])
        self.dot = "." if "s" in found["flags"] else self.dot
        self.place = found.end()

    def _character(self, piece: re.Match[str]) -> None:
        self._literal(piece[0], written=piece[0])

    def _literal(self, character: str, *, written: str) -> None:
        """Add a literal character; if `*`, `?` or `{` follows, a match may lack it."""
        self.out.append(written)
        follows = self.source[self.place : self.place + 1]
        if not self.open and follows not in ("*", "?", "{"):
            self.literals[-1] += character

    def _special(self, piece: re.Match[str]) -> None:
        character = piece[0]
        if character == ")" and self.open:
            self.open.pop()
        self.has_alternatives |= character == "|" and not self.open
        self.out.append({".": self.dot, "{": r"\{"}.get(character, character))

    def _repeated(self, piece: re.Match[str]) -> None:
        if piece["possessive"]:
            raise pattern_error(
                "Possessive quantifiers such as a++ are not supported; write a+. A search cannot run away: it is timed."
            )
        self.out.append(piece[0].replace("{,", "{0,"))

    def _comment(self, piece: re.Match[str]) -> None:
        """Drop the comment; a quantifier behind it is of the character before it."""
        self.literals[-2] = self.literals[-2][:-1]

    def _group(self, piece: re.Match[str]) -> None:
        if piece["called"]:
            self.names[piece["called"]] = len(self.groups) + 1
        is_inside_lookaround = any(self.open)
        counted = sum(number is not None for number in self.groups)
        self.groups.append(None if is_inside_lookaround else counted + 1)
        self.open.append(is_inside_lookaround)
        self.out.append("(")

    def _inner(self, piece: re.Match[str]) -> None:
        self.open.append(piece[0] != "(?:" or any(self.open))
        self.out.append(piece[0])

    def _refused(self, piece: re.Match[str]) -> None:
        if _FLAGS.match(self.source, piece.start()):
            raise pattern_error("Flags such as (?i) are supported only at the beginning of the pattern, for all of it.")
        beginning = self.source[piece.start() : piece.start() + 3]
        name = _UNKNOWN_GROUPS.get(beginning, f"A group that begins with {beginning}")
        raise pattern_error(f"{name} is not supported; write a plain group (...) or (?:...).")

    def _escape(self, piece: re.Match[str]) -> None:
        letter = piece[0][1:]
        if not letter:
            raise pattern_error(r"The pattern ends in a backslash; for the character itself write \\.")
        if letter in _SAME or letter in _OTHERWISE:
            self.literals.append("")
            self.out.append(_OTHERWISE.get(letter, piece[0]))
        else:
            self._literal(letter, written=_escaped(letter))

    def _code(self, piece: re.Match[str]) -> None:
        code = self._code_point(piece)
        self._literal(chr(code), written=f"\\U{code:08x}")

    def _code_point(self, piece: re.Match[str]) -> int:
        r"""Parse the code point in an escape: \xhh, \x{h...}, \uhhhh, \Uhhhhhhhh."""
        found = _CODE.match(piece[0])
        assert found is not None
        width = _DIGITS[found["style"]]
        digits = found["braced"] or found["digits"][:width]
        if not digits or (not found["braced"] and len(digits) < width):
            raise pattern_error(f"\\{found['style']} takes {width} hexadecimal digits.")
        code = int(digits, 16)
        if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise pattern_error(f"No text holds the character {code:#x}, so it cannot be searched for.")
        self.place = piece.start() + (found.end() if found["braced"] else 2 + width)
        return code

    def _reference(self, piece: re.Match[str]) -> None:
        name = piece["name"] or piece["other"] or piece["number"]
        number = int(name) if name.isdecimal() else self.names.get(name)
        if number is None:
            raise pattern_error(f"There is no group named {name} before the reference to it.")
        if not 1 <= number <= len(self.groups):
            raise pattern_error(f"There is no group {number} before the reference to it.")
        target = self.groups[number - 1]
        if target is None or any(self.open):
            raise pattern_error("References to a group are not supported in or into (?=...), (?!...) and their like.")
        if target > 9:
            raise pattern_error(
                "References are supported to the first nine groups; write (?:...) where none is referred to."
            )
        # The empty group separates the reference from a digit that follows it.
        self.out.append(f"\\{target}" + ("(?:)" if self.source[self.place :][:1].isdigit() else ""))

    def _brackets(self, piece: re.Match[str]) -> None:
        """Translate a character class up to its end; a leading `]` is a member of it."""
        self.out.append(piece[0])
        while not self.source.startswith("]", self.place):
            inner = _IN_BRACKETS.match(self.source, self.place)
            if inner is None:
                raise pattern_error(r"A [ is not closed; for the character itself write \[.")
            self.place = inner.end()
            if inner["code"]:
                self.out.append(f"\\U{self._code_point(inner):08x}")
            elif inner["escape"] and inner[0][1:] not in _SAME_IN_BRACKETS:
                self.out.append(_escaped(inner[0][1:]))
            else:
                self.out.append(r"\[" if inner[0] == "[" else inner[0])
        self.place += 1
        self.out.append("]")


def _escaped(letter: str) -> str:
    """Translate an escaped literal; raises Invalid for an unknown escape."""
    if not (letter.isascii() and letter.isalnum()):
        return "\\" + letter if letter.isascii() else letter
    if letter in "pPX":
        raise pattern_error(
            rf"Unicode classes such as \{letter} are not supported; use \w, \d, \s, [[:upper:]], a range."
        )
    if letter == "0":
        raise pattern_error(r"Octal escapes are not supported, and no text holds a NUL; write \xhh.")
    raise pattern_error(rf"PostgreSQL has no \{letter}; for the character itself, write it without the backslash.")
