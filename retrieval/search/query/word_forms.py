"""Look up forms of English words that stemming does not find, such as `won`.

Each line of a list is a group of forms. For a verb, the base form comes first. A word family is a word with derived
words of another stem, such as `fail failure`.

The lists do not have forms that are more often another word: `bit` (of data), `left` (the side), `rose`, `ground`,
`wound`, `bound`, `bore`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

_ENGLISH = Path(__file__).parent / "english"


def other_forms(word: str) -> tuple[str, ...]:
    """The forms of a word that stemming does not reduce to the same lexeme."""
    return known().get(word.strip(".,;:!?\"'()[]").lower(), ())


@cache
def known() -> Mapping[str, tuple[str, ...]]:
    """For each word in the lists, its other forms."""
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
    """The regular forms of a verb, also the form with a doubled last letter."""
    stem = base.removesuffix("e") if not base.endswith("ee") else base
    return (f"{base}s", f"{base}es", f"{stem}ing", f"{base}{base[-1]}ing")


def _past(word: str) -> tuple[str, ...]:
    """The regular past forms of a word; if it ends in -y, also the form in -ies."""
    stem = word.removesuffix("y")
    return (f"{word}d", f"{word}ed") if stem == word else (f"{stem}ied", f"{stem}ies")
