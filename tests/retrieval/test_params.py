"""What a caller may not ask of the four ways to read, refused before a service is called."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.errors import Invalid
from conversations.param_fields import Params
from retrieval import params
from retrieval.map.params import SubmitMapParams

RUN: dict[str, Any] = {"prompt": "Label {{item}}.", "output_schema": {}}
RANGE = {"conversation_id": 1, "from_seq": 1, "to_seq": 3}
NO_NUMBERS: list[Any] = [True, 1.5, "10", float("nan"), 10**30]


@pytest.mark.parametrize(
    ("kind", "complete", "field", "wrong"),
    [
        (params.GrepParams, {"query": "boats"}, "from_seq", [-1, 2**63]),
        (params.GrepParams, {"query": "boats"}, "since", [5]),
        (params.GrepParams, {"query": "boats"}, "conversation_ids", [list(range(101)), ["harbour"], [-1]]),
        (params.GrepParams, {"query": "boats"}, "roles", [["captain"], "user"]),
        (params.GrepParams, {"query": "boats"}, "part_types", [["poem"]]),
        (params.GrepParams, {"query": "boats"}, "tool_names", [[""]]),
        (params.GrepParams, {"query": "boats"}, "mode", ["fuzzy"]),
        (params.GrepParams, {"query": "boats"}, "scope", ["parts"]),
        (params.GrepParams, {"query": "boats"}, "cursor", [""]),
        (params.GrepParams, {"query": "boats"}, "rolls", [["user"]]),
        (params.GrepParams, {"query": "boats"}, "limit", [0, -1, 201, *NO_NUMBERS]),
        (params.GrepParams, {"query": "boats"}, "max_tokens", [0, -1, *NO_NUMBERS]),
        (params.AssembleParams, {"conversation_id": 1}, "budget", [0, -1, 100_000_001, *NO_NUMBERS]),
        (params.AssembleParams, {"conversation_id": 1}, "reserve", [-1, None, *NO_NUMBERS]),
        (params.AssembleParams, {"conversation_id": 1}, "format", ["gemini", "", 7]),
        (params.AssembleParams, {"conversation_id": 1}, "as_of", ["", "7\x00", "x" * 81, True, 1.5]),
        (params.RecallParams, {"conversation_id": 1}, "budget", [0, *NO_NUMBERS]),
        (params.RecallParams, {"conversation_id": 1}, "share", [0, -0.1, 1.01, float("nan"), True, "0.5", None]),
        (params.ExpandParams, {"summary_id": "sum_1"}, "depth", [0, -2, 1_001, *NO_NUMBERS]),
        (params.ExpandParams, {"summary_id": "sum_1"}, "token_cap", [0, -5, *NO_NUMBERS]),
        (params.RangeParams, RANGE, "from_seq", [0, -1, 2**63, *NO_NUMBERS]),
        (params.ExpandRangeParams, RANGE, "to_seq", [0, -1, 2**63, *NO_NUMBERS]),
        (params.ImpactParams, {"id": "sum_1"}, "limit", [0, 1_001, *NO_NUMBERS]),
        (params.ExpandQueryParams, {"question": "Which?"}, "depth", [0, 4, *NO_NUMBERS]),
        (params.ExpandQueryParams, {"question": "Which?"}, "token_cap", [1, 31, *NO_NUMBERS]),
        (params.ExpandQueryParams, {"question": "Which?"}, "ids", [["sum_1"] * 51, [7], "sum_1"]),
        (SubmitMapParams, RUN, "concurrency", [0, 65, *NO_NUMBERS]),
        (SubmitMapParams, RUN, "max_attempts", [0, 11, *NO_NUMBERS]),
        (SubmitMapParams, RUN, "timeout_s", [0, 601, *NO_NUMBERS]),
        (SubmitMapParams, RUN, "budget_tokens", [0, *NO_NUMBERS]),
        (SubmitMapParams, RUN, "temperature", [-0.1, 2.1, float("nan"), True, "0.5"]),
    ],
)
def test_values_out_of_range_or_of_another_type_are_refused(
    kind: type[Params], complete: dict[str, Any], field: str, wrong: list[Any]
):
    kind.accepted(complete)

    for value in wrong:
        with pytest.raises(Invalid) as refusal:
            kind.accepted({**complete, field: value})
        assert [name.partition("[")[0] for name in refusal.value.context["errors"]] == [field]
