from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.formats.neutral import from_neutral, to_neutral
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.real_data import conversation_files, needs_data, rows_of
from tests.conversations.records import as_stored
from tests.factories import a_conversation, a_store


def round_trip(row: dict[str, Any]) -> dict[str, Any]:
    record = as_stored(from_neutral(row), seq=row["seq"] + 1)
    return to_neutral(record, session_id=row["session_id"], first_seq=0)


def a_row(**changes: Any) -> dict[str, Any]:
    row = {
        "session_id": "s",
        "seq": 0,
        "role": "user",
        "content": "hello",
        "parts": [{"type": "text", "text": "hello"}],
        "created_at": "2026-01-31T12:00:00Z",
    }
    return row | changes


def test_a_tool_call_and_its_result_land_in_their_columns():
    call = {"type": "tool_call", "id": "call_1", "name": "grep", "input": {"pattern": "def ", "path": "."}}
    result = {"type": "tool_result", "id": "call_1", "text": "3 matches", "is_error": False}

    message = from_neutral(a_row(parts=[call, result]))

    assert message.parts == (
        NewPart(
            PartType.TOOL,
            tool_call_id="call_1",
            tool_name="grep",
            tool_input={"pattern": "def ", "path": "."},
            tool_status="pending",
        ),
        NewPart(PartType.TOOL, tool_call_id="call_1", tool_output="3 matches", tool_status="completed"),
    )


def test_a_failed_tool_is_an_error():
    row = a_row(parts=[{"type": "tool_result", "id": "call_1", "text": "no such file", "is_error": True}])

    (part,) = from_neutral(row).parts

    assert (part.tool_error, part.tool_output, part.tool_status) == ("no such file", None, "error")
    assert round_trip(row) == row


def test_the_content_stays_as_it_is_given_whatever_the_parts_say():
    row = a_row(
        content="hello [photo]", parts=[{"type": "text", "text": "hello"}, {"type": "image", "caption": "a dog"}]
    )

    assert from_neutral(row).content == "hello [photo]"


def test_the_metadata_is_the_rows_meta():
    assert from_neutral(a_row(meta={"speaker": "Ann"})).metadata == {"speaker": "Ann"}


def test_a_plain_row_leaves_no_trace_in_the_metadata():
    message = from_neutral(a_row())

    assert message.metadata == {}
    assert message.parts[0].metadata is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.500Z", datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.123456789Z", datetime(2026, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_as_an_instant_and_comes_back_as_the_same_text(text, moment):
    row = a_row(created_at=text)

    assert from_neutral(row).created_at == moment
    assert round_trip(row)["created_at"] == text


def test_a_message_without_a_time_comes_back_without_one():
    assert round_trip(a_row(created_at=None))["created_at"] is None


def test_a_row_counted_from_elsewhere_comes_back_counted_so():
    record = as_stored(from_neutral(a_row(seq=17)), seq=3)

    assert to_neutral(record, session_id="t", first_seq=15)["seq"] == 17


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"role": "robot"}, "role must be one of system, user, assistant, tool, not 'robot'."),
        ({"role": None}, "role must be one of system, user, assistant, tool, not null."),
        ({"content": 5}, "content must be a text, not a whole number."),
        ({"content": None, "parts": []}, "content must be a text where there are no parts."),
        ({"parts": {}}, "parts must be a list, not an object."),
        ({"parts": ["hello"]}, "parts[0] must be an object, not a text."),
        ({"parts": [{"type": "text", "text": True}]}, "parts[0].text must be a text, not true or false."),
        (
            {"parts": [{"type": "tool_result", "is_error": "no"}]},
            "parts[0].is_error must be true or false, not a text.",
        ),
        ({"parts": [{"type": "patch", "patch_files": [1]}]}, "parts[0].patch_files must be a list of texts."),
        (
            {"parts": [{"type": "step_finish", "step_cost": "1e999999999"}]},
            "parts[0].step_cost must be a decimal number of sensible size.",
        ),
        ({"created_at": "yesterday"}, "created_at must be a time as ISO 8601 writes it, not 'yesterday'."),
        ({"created_at": "0001-01-01T00:00:00+14:00"}, "created_at must be a time as ISO 8601 writes it, not"),
        ({"created_at": 1700000000}, "created_at must be a text, not a whole number."),
        ({"meta": []}, "meta must be an object, not a list."),
        ({"seq": "1"}, "seq must be a whole number, not a text."),
    ],
)
def test_a_malformed_row_is_refused_with_the_name_of_its_field(changes, sentence):
    with pytest.raises(ValueError) as refusal:
        from_neutral(a_row(**changes))

    assert str(refusal.value).startswith(sentence)


def test_an_unknown_part_type_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match=r"parts\[0\].type must be one of text, .*tool_call.*, not 'hologram'."):
        from_neutral(a_row(parts=[{"type": "hologram"}]))


def test_something_that_is_no_object_is_no_message():
    with pytest.raises(ValueError, match="A message must be an object, not a list."):
        from_neutral([])  # type: ignore[arg-type]


def test_every_column_of_every_part_type_goes_out_and_comes_in_again():
    values: dict[str, Any] = {
        "is_ignored": False,
        "is_synthetic": True,
        "compaction_auto": True,
        "step_tokens_in": 12,
        "step_tokens_out": 0,
        "step_cost": Decimal("0.1200"),
        "patch_files": ("a.py", "b.py"),
        "tool_input": {"z": 1, "a": [1.5, None]},
        "metadata": {"own": 1},
    }
    columns = [name for name in NewPart.__dataclass_fields__ if name != "part_type"]
    full = {name: values.get(name, f"the {name}") for name in columns}
    parts = tuple(NewPart(part_type, **full) for part_type in PartType)
    row = to_neutral(as_stored(NewMessage(Role.ASSISTANT, "x", parts)), session_id="s")

    through_json = json.loads(json.dumps(row))

    assert from_neutral(through_json).parts == parts


def test_what_compaction_noted_is_not_part_of_what_was_said():
    said = NewPart(PartType.TEXT, text_content="hello")
    noted = NewPart(PartType.COMPACTION, is_synthetic=True, is_ignored=True, text_content="sum_1")

    row = to_neutral(as_stored(NewMessage(Role.USER, "hello", (said, noted))), session_id="s")

    assert row["parts"] == [{"type": "text", "text": "hello"}]


def test_a_callers_metadata_under_our_name_is_left_alone():
    record = as_stored(NewMessage(Role.USER, "hello", metadata={"neutral": 5, "add": {"role": 1}}))

    assert to_neutral(record, session_id="s")["meta"] == {"neutral": 5, "add": {"role": 1}}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
# Names that mean something somewhere, so that leftovers meet names the form knows.
_odd_keys = st.dictionaries(
    st.sampled_from(["cost", "neutral", "metadata", "add", "drop", "inside", "part_type"]), _json, max_size=3
)
_forged = st.sampled_from(
    [{}, {"add": {"text": "forged"}}, {"drop": ["text", "role"]}, {"inside": {"role": {"drop": ["a"]}}}]
)
_metas = st.dictionaries(st.sampled_from(["neutral", "text", "type", "a"]), _json | _forged, max_size=3)


def _parts_of(type_: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    optional = {key: st.none() | value for key, value in fields.items()} | {"meta": _json | _metas}
    known = st.fixed_dictionaries({"type": st.just(type_)}, optional=optional)
    return st.builds(lambda odd, part: odd | part, _odd_keys | st.fixed_dictionaries({"neutral": _forged}), known)


_parts = st.one_of(
    _parts_of("text", text=st.text(), is_synthetic=st.booleans(), text_content=st.text()),
    _parts_of("reasoning", text=st.text()),
    _parts_of("compaction", text=st.text(), is_ignored=st.just(True)),
    _parts_of("tool_call", id=st.text(), name=st.text(), input=_json, tool_status=st.text(), tool_output=st.text()),
    _parts_of("tool_result", id=st.text(), text=st.text(), is_error=st.booleans(), tool_error=st.text(), input=_json),
    _parts_of("image", mime=st.text(), caption=st.text(), data=_json, url=st.text(), file_mime=st.text()),
    _parts_of("tool", tool_input=_json, tool_output=st.text(), tool_name=st.text()),
    _parts_of("file", file_mime=st.sampled_from(["image/png", "text/plain"]), name=st.text()),
    _parts_of("patch", patch_files=st.lists(st.text())),
    _parts_of(
        "step_finish", step_cost=st.decimals(-9999, 9999).map(str) | st.floats(-9, 9), step_tokens_in=st.integers()
    ),
)
_rows = st.builds(
    lambda odd, row: odd | row,
    _odd_keys,
    st.fixed_dictionaries(
        {
            "session_id": st.text(),
            "seq": st.integers(0, 9),
            "role": st.sampled_from([role.value for role in Role]),
            "content": st.text(),
        },
        optional={
            "parts": st.none() | st.lists(_parts, max_size=4),
            "created_at": st.none() | st.datetimes(min_value=datetime(2, 1, 1)).map(datetime.isoformat),
            "meta": st.none() | _metas,
            "author": st.none() | st.text(),
        },
    ),
)


@given(_rows)
def test_any_row_comes_back_key_for_key(row):
    assert json.dumps(round_trip(row), sort_keys=True) == json.dumps(row, sort_keys=True)


@needs_data
@pytest.mark.parametrize("file", conversation_files(), ids=lambda file: file.name.split(".")[0])
def test_every_real_message_comes_back_key_for_key(file: Path):
    for row in rows_of(file):
        assert round_trip(row) == row


@needs_data
@pytest.mark.django_db
def test_a_real_conversation_comes_back_from_the_store_key_for_key():
    file = next(file for file in conversation_files() if file.name.startswith("cc_ccl_0d3a8e6f"))
    rows = list(rows_of(file))
    conversation, store = a_conversation(), a_store()

    store.append_messages(conversation_id=conversation.conversation_id, messages=[from_neutral(row) for row in rows])

    stored = store.list_messages(conversation_id=conversation.conversation_id, limit=len(rows) + 1)
    session_id, first_seq = rows[0]["session_id"], rows[0]["seq"]
    assert [to_neutral(record, session_id=session_id, first_seq=first_seq) for record in stored] == rows
