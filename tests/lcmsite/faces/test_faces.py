"""One catalogue, many faces: the same question has the same answer whoever is asked."""

import inspect
import json
from collections.abc import Callable
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import pytest

from conversations.scope import Scope
from lcmsite.catalogue.json_text import as_ascii_json
from lcmsite.catalogue.operation import placeholders
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from tests.factories import a_workspace
from tests.lcmsite.callers import Api, an_api_key, as_arguments, lcm
from tests.lcmsite.faces.questions import READS, questions


def _of_service(operation, given):
    service = operation.service.from_settings(Scope(a_workspace().pk))
    return json.loads(as_ascii_json(getattr(service, operation.method)(**operation.params.accepted(given))))


FLEETING = ("started_at", "finished_at", "grant", "milliseconds", "report_id", "next_cursor")


def _lasting(value):
    """The answer without what is another every time it is asked."""
    if isinstance(value, dict):
        return {name: _lasting(each) for name, each in value.items() if name not in FLEETING}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


def _exit_code_of(answer):
    """An answer that says of itself that something is damaged has a status of its own."""
    return FINDINGS_EXIT_CODE if isinstance(answer, dict) and answer.get("is_clean") is False else 0


@pytest.mark.sampled(20)
@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.tool)
def test_service_rest_and_command_line_give_one_answer(world, operation):
    api = Api(an_api_key(None, operation.scope))

    for given in questions(operation, world):
        expected = _lasting(_of_service(operation, given))
        reply = api.perform(operation, given)
        shown = lcm("--json", *as_arguments(operation, given))

        if operation.operator_only:
            assert reply.status == 403
        else:
            assert reply.status == operation.status
            assert _lasting(reply.body) == expected
        assert shown.exit_code == _exit_code_of(expected), shown.err
        assert _lasting(shown.json) == expected


@pytest.mark.sampled(15)
@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.tool)
def test_every_answer_can_be_read_on_a_terminal(world, operation):
    for given in questions(operation, world):
        shown = lcm(*as_arguments(operation, given))

        assert shown.exit_code == _exit_code_of(_of_service(operation, given)), shown.err
        assert shown.out.strip()
        assert "\x00" not in shown.out


def taken_by(method: Callable[..., Any]) -> set[str]:
    """The names of what a method takes, those in a dictionary of named things, such as grep's, included."""
    takes = set(inspect.signature(method).parameters) - {"self"}
    for annotation in get_type_hints(method).values():
        if get_origin(annotation) is Unpack:
            takes |= get_args(annotation)[0].__annotations__.keys()
    return takes


def test_the_catalogue_is_of_one_piece():
    assert len({operation.tool for operation in CATALOGUE}) == len(CATALOGUE)
    assert len({(operation.verb, path) for operation in CATALOGUE for path in operation.paths}) == sum(
        len(operation.paths) for operation in CATALOGUE
    )
    for operation in CATALOGUE:
        takes = taken_by(getattr(operation.service, operation.method))
        says = operation.params.model_fields.keys()
        # What only tells the adapter how to read or when to do it does not reach the service.
        assert says - {"format", "background"} - ({"cursor"} if operation.paging else set()) <= takes, operation.tool
        assert set(placeholders(operation.path)) <= says, operation.tool
        assert operation.description, operation.tool
