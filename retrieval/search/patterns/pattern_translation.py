"""Translate a regular expression of Python's kind into PostgreSQL's. Pure.

^ and $ match at every line, as with Python's (?m), and . no newline, unless the pattern begins with (?s); (?i) and
(?x) are understood there too. What PostgreSQL has no counterpart for is refused with a sentence that says what to do
instead; whether the rest is valid, PostgreSQL decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from conversations.errors import Invalid

# A literal shorter than this rules out too little to be worth looking for first.
SHORTEST_LITERAL = 3

_HEX = re.compile(r"[0-9a-fA-F]+")
_NAMED = re.compile(r"\(\?(?:P?<|')(?P<name>[A-Za-z_]\w*)[>']")
_FLAGS = re.compile(r"\(\?(?P<flags>[a-zA-Z]*)(?P<off>-[a-zA-Z]*)?(?P<end>[:)])")
_BOUND = re.compile(r"\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\}")
_REFERENCE = re.compile(r"\(\?P=(?P<name>\w+)\)|\\k[<{'](?P<other>\w+)[>}']")
# Escapes that mean the same to both. `\y`, `\m` and their like are PostgreSQL's own.
_SAME = frozenset("dswDSWntrfvaeAZyYmM")
_IN_BRACKETS = frozenset("dswDSWntrfvaeb")
_OTHERWISE = {"b": r"\y", "B": r"\Y", "z": r"\Z"}
# What matches or not by what is around it, as an escape and as the name of a class.
_EDGES = frozenset("AZzbByYmM")
_EDGE_CLASSES = ("[:<:]", "[:>:]")


@dataclass(frozen=True)
class Pattern:
    """A pattern for PostgreSQL, and a literal that every match contains, if known.

    `group` is the same in parentheses, if whatever it matches would be matched wherever it stood: then the first place
    of what was matched is the place of the match. None for one that looks around, as at an edge of a word or a line.
    """

    expression: str
    literal: str | None = None
    group: str | None = None


def translated(pattern: str) -> Pattern:
    """The pattern for PostgreSQL; Invalid (`bad_pattern`) without a counterpart."""
    return _Translation(pattern).run()


def literally(text: str) -> Pattern:
    """A pattern for a literal text, ignoring case and amounts of white space."""
    words = (re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", word) for word in text.split())
    body = r"\s+".join(words)
    return Pattern(f"(?iw){body}", group=f"(?iw)({body})")


def refused(sentence: str) -> Invalid:
    return Invalid(sentence, code="bad_pattern")


@dataclass
class _Translation:
    """One pass over a pattern, from left to right."""

    source: str
    place: int = 0
    out: list[str] = field(default_factory=list)
    # PostgreSQL's number of each group by Python's, None for one inside a lookaround, which cannot be referred to.
    groups: list[int | None] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    # What each open parenthesis is: True for a lookaround.
    open: list[bool] = field(default_factory=list)
    run_of: list[str] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    has_alternatives: bool = False
    # Whether what it matches depends on what is around it, or on the numbers of groups.
    looks_around: bool = False
    # `w`: ^ and $ at every line, and classes such as [^a] match a newline, as they do in Python.
    options: str = "w"
    dot: str = r"[^\n]"

    def run(self) -> Pattern:
        self._leading_flags()
        while self.place < len(self.source):
            self._step()
        self._end_literal()
        longest = max(self.literals, key=len, default="")
        is_certain = not self.has_alternatives and not set(self.options) & {"i", "x"}
        literal = longest if is_certain and len(longest) >= SHORTEST_LITERAL else None
        body = "".join(self.out)
        # With blanks and comments, a parenthesis at the end may be in a comment.
        has_group = not self.looks_around and "x" not in self.options
        return Pattern(f"(?{self.options}){body}", literal, group=f"(?{self.options})({body})" if has_group else None)

    def _step(self) -> None:
        character = self.source[self.place]
        if character == "\\":
            self._escape()
        elif character == "[":
            self._brackets()
        elif character == "(":
            self._group()
        elif character in "*+?{" and self._quantifier():
            return
        elif character in ".^$|)":
            self._end_literal()
            if character == ")" and self.open:
                self.open.pop()
            self.has_alternatives |= character == "|" and not self.open
            self.looks_around |= character in "^$"
            self._take(self.dot if character == "." else character, length=1)
        else:
            self._character(character)

    # Literals

    def _take(self, text: str, *, length: int | None = None) -> None:
        self.out.append(text)
        self.place += len(text) if length is None else length

    def _character(self, character: str, *, written: str | None = None, length: int = 1) -> None:
        """Take a literal character; a quantifier after it may end the literal."""
        self._take(character if written is None else written, length=length)
        follows = self.source[self.place : self.place + 1]
        if follows and follows in "*?{":
            self._end_literal()
            return
        if not self.open:
            self.run_of.append(character)
        if follows == "+":
            self._end_literal()

    def _end_literal(self) -> None:
        if self.run_of:
            self.literals.append("".join(self.run_of))
            self.run_of.clear()

    # Quantifiers

    def _quantifier(self) -> bool:
        """Take a quantifier; False if there is none here."""
        character = self.source[self.place]
        if character == "{":
            bound = _BOUND.match(self.source, self.place)
            if bound is None or not (bound["least"] or bound["most"]):
                self._end_literal()
                self._take(r"\{", length=1)
                return True
            self._end_literal()
            least = bound["least"] or "0"
            self._take(f"{{{least}{bound['comma']}{bound['most']}}}", length=len(bound[0]))
        else:
            self._end_literal()
            self._take(character)
        if self.source.startswith("?", self.place):
            self._take("?")
        elif self.source.startswith("+", self.place):
            raise refused(
                "Possessive quantifiers such as a++ are not supported; write a+. A search cannot run away: it is timed."
            )
        return True

    # Groups

    def _leading_flags(self) -> None:
        found = _FLAGS.match(self.source)
        if found is None or found["end"] != ")" or not found["flags"]:
            return
        unknown = sorted(set(found["flags"]) - set("imsxu"))
        if unknown or found["off"]:
            raise refused(f"The flags {found[0]} are not supported; i, s, x and m are.")
        self.options += "".join(flag for flag in "ix" if flag in found["flags"])
        self.dot = "." if "s" in found["flags"] else self.dot
        self.place = found.end()

    def _group(self) -> None:
        self._end_literal()
        source, place = self.source, self.place
        reference = _REFERENCE.match(source, place)
        named = _NAMED.match(source, place)
        if reference is not None:
            self._refer_to_name(reference)
        elif named is not None and not source.startswith(("(?<=", "(?<!"), place):
            self.names[named["name"]] = len(self.groups) + 1
            self._open_group("(", len(named[0]))
        elif source.startswith("(?:", place):
            self.open.append(any(self.open))
            self._take("(?:")
        elif source.startswith(("(?=", "(?!"), place):
            self.open.append(True)
            self.looks_around = True
            self._take(source[place : place + 3])
        elif source.startswith(("(?<=", "(?<!"), place):
            self.open.append(True)
            self.looks_around = True
            self._take(source[place : place + 4])
        elif source.startswith("(?#", place):
            end = source.find(")", place)
            self.place = len(source) if end < 0 else end + 1
        elif source.startswith("(?", place):
            self._refuse_group()
        else:
            self._open_group("(", 1)

    def _open_group(self, written: str, length: int) -> None:
        inside_lookaround = any(self.open)
        counted = sum(number is not None for number in self.groups)
        self.groups.append(None if inside_lookaround else counted + 1)
        self.open.append(inside_lookaround)
        self._take(written, length=length)

    def _refuse_group(self) -> None:
        beginning = self.source[self.place : self.place + 3]
        if _FLAGS.match(self.source, self.place):
            raise refused("Flags such as (?i) are supported only at the beginning of the pattern, for all of it.")
        what = {"(?>": "An atomic group (?>...)", "(?(": "A condition (?(...)...)", "(?R": "Recursion (?R)"}
        name = what.get(beginning, f"A group that begins with {beginning}")
        raise refused(f"{name} is not supported; write a plain group (...) or (?:...).")

    # Escapes

    def _escape(self) -> None:
        source, place = self.source, self.place
        letter = source[place + 1 : place + 2]
        reference = _REFERENCE.match(source, place)
        if not letter:
            raise refused(r"The pattern ends in a backslash; for the character itself write \\.")
        if reference is not None:
            self._end_literal()
            self._refer_to_name(reference)
        elif letter in _SAME or letter in _OTHERWISE:
            self._end_literal()
            self.looks_around |= letter in _EDGES
            self._take(_OTHERWISE.get(letter, "\\" + letter), length=2)
        elif letter in "xuU":
            code, length = self._code_point()
            self._character(chr(code), written=f"\\U{code:08x}", length=length)
        elif letter in "123456789":
            self._end_literal()
            digits = re.match(r"\d+", source[place + 1 :])
            number = digits[0] if digits else letter
            self._refer_to(int(number), length=1 + len(number))
        elif letter.isascii() and letter.isalnum():
            self._refuse_escape(letter)
        else:
            self._character(letter, written="\\" + letter if letter.isascii() else letter, length=2)

    def _code_point(self) -> tuple[int, int]:
        r"""The character and length of an escape: \xhh, \x{h...}, \uhhhh, \Uhhhhhhhh."""
        source, place = self.source, self.place
        width = {"x": 2, "u": 4, "U": 8}[source[place + 1]]
        braced = source[place + 2 : place + 3] == "{"
        end = source.find("}", place) if braced else place + 2 + width
        digits = source[place + (3 if braced else 2) : end]
        if not _HEX.fullmatch(digits) or (not braced and len(digits) != width):
            raise refused(f"\\{source[place + 1]} takes {width} hexadecimal digits.")
        code = int(digits, 16)
        if code == 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise refused(f"No text holds the character {code:#x}, so it cannot be searched for.")
        return code, end + braced - place

    def _refuse_escape(self, letter: str) -> None:
        if letter in "pPX":
            raise refused(
                rf"Unicode classes such as \{letter} are not supported; use \w, \d, \s, [[:upper:]], a range."
            )
        if letter == "0":
            raise refused(r"Octal escapes are not supported, and no text holds a NUL; write \xhh.")
        raise refused(rf"PostgreSQL has no \{letter}; for the character itself, write it without the backslash.")

    def _refer_to_name(self, reference: re.Match[str]) -> None:
        name = reference["name"] or reference["other"]
        number = int(name) if name.isdigit() else self.names.get(name)
        if number is None:
            raise refused(f"There is no group named {name} before the reference to it.")
        self._refer_to(number, length=len(reference[0]))

    def _refer_to(self, number: int, *, length: int) -> None:
        if not 1 <= number <= len(self.groups):
            raise refused(f"There is no group {number} before the reference to it.")
        target = self.groups[number - 1]
        if target is None or any(self.open):
            raise refused("References to a group are not supported in or into (?=...), (?!...) and their like.")
        if target > 9:
            raise refused("References are supported to the first nine groups; write (?:...) where none is referred to.")
        self.looks_around = True
        # A digit that follows is no part of the reference.
        self._take(f"\\{target}" + ("(?:)" if self.source[self.place + length :][:1].isdigit() else ""), length=length)

    # Bracket expressions

    def _brackets(self) -> None:
        self._end_literal()
        source = self.source
        self._take("[")
        if source.startswith("^", self.place):
            self._take("^")
        if source.startswith("]", self.place):
            self._take("]")
        while self.place < len(source) and source[self.place] != "]":
            self._in_brackets(source[self.place])
        if self.place >= len(source):
            raise refused(r"A [ is not closed; for the character itself write \[.")
        self._take("]")

    def _in_brackets(self, character: str) -> None:
        source, place = self.source, self.place
        if source.startswith("[:", place) and (end := source.find(":]", place + 2)) > 0:
            self.looks_around |= source.startswith(_EDGE_CLASSES, place)
            self._take(source[place : end + 2])
        elif character == "[":
            self._take(r"\[", length=1)
        elif character != "\\":
            self._take(character)
        else:
            letter = source[place + 1 : place + 2]
            if letter and letter in "xuU":
                code, length = self._code_point()
                self._take(f"\\U{code:08x}", length=length)
            elif letter in _IN_BRACKETS or not (letter.isascii() and letter.isalnum()):
                self._take("\\" + letter if letter.isascii() else letter, length=1 + len(letter))
            else:
                self._refuse_escape(letter)
