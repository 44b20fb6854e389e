from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.formats.foreign_rows import is_remainder, remainder, restored, split_remainder

_values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 0.0, 1.0, "", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_objects = st.dictionaries(st.sampled_from(["a", "b", "c", "add"]), _values, max_size=4)


@given(_objects, _objects)
def test_a_plain_form_and_its_remainder_make_the_row_again(row, plain):
    rest = remainder(row, plain)

    assert json.dumps(restored(plain, rest), sort_keys=True) == json.dumps(row, sort_keys=True)
    assert rest == {} or is_remainder(rest)


@pytest.mark.parametrize(("one", "other"), [(True, 1), (0, False), (1, 1.0), ([1], [1.0]), ({"a": True}, {"a": 1})])
def test_values_that_json_tells_apart_are_not_the_same(one, other):
    assert remainder({"key": one}, {"key": other}) != {}


@pytest.mark.parametrize("own", [5, {}, {"add": 5}, {"drop": [1]}, {"inside": {"a": 5}}, {"other": {}}])
def test_metadata_that_only_bears_our_name_is_the_callers(own):
    assert split_remainder({"neutral": own}, "neutral") == ({"neutral": own}, {})
