"""Irregular forms of English words, which stemming misses: `won`. Pure.

The lists have a group of forms on each line: of a verb, the base first; a family is what is done and how it is called,
where that has a stem of its own.

Left out is what is mostly another word: `bit` (of data), `left` (the side), `rose`, `ground`, `wound`, `bound`, `bore`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_ENGLISH = Path(__file__).parent / "english"


def other_forms(word: str) -> tuple[str, ...]:
    """The forms of the word that stemming does not bring together with it."""
    return known().get(word.strip(".,;:!?\"'()[]").lower(), ())


@cache
def known() -> Mapping[str, tuple[str, ...]]:
    """The other forms of every word that has any."""
    forms: dict[str, tuple[str, ...]] = {}
    for base, *irregular in _groups("irregular_verbs"):
        forms |= {form: tuple(irregular) for form in (base, *_regular(base))}
        forms |= {form: (base, *(each for each in irregular if each != form)) for form in irregular}
    for group in _groups("irregular_nouns"):
        forms |= {form: tuple(each for each in group if each != form) for form in group}
    for family in _groups("word_families"):
        for word in family:
            others = tuple(each for each in family if each != word)
            inflected = (word, *_regular(word), *_past(word))
            forms |= {form: (*forms.get(form, ()), *others) for form in inflected}
    return forms


def _groups(name: str) -> Iterator[list[str]]:
    return map(str.split, (_ENGLISH / f"{name}.txt").read_text(encoding="utf-8").splitlines())


def _regular(base: str) -> tuple[str, ...]:
    """The regular forms of a verb, also with its last letter doubled."""
    stem = base.removesuffix("e") if not base.endswith("ee") else base
    return (f"{base}s", f"{base}es", f"{stem}ing", f"{base}{base[-1]}ing")


def _past(word: str) -> tuple[str, ...]:
    """Of a verb that has one; and the plural of a noun that ends like one."""
    stem = word.removesuffix("y")
    return (f"{word}d", f"{word}ed") if stem == word else (f"{stem}ied", f"{stem}ies")
