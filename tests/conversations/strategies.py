"""Texts and JSON for tests, with what databases and JSON find hard."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

# With NUL and surrogates far more often than chance would have them.
texts = st.text(st.sampled_from("ab\x00\ud800\udc00\ufffd") | st.characters(codec=None), max_size=12)
plain_texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


def json_of(strings: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3), max_leaves=8
    )


def as_json_says_it(value: Any) -> Any:
    return json.loads(json.dumps(value))
