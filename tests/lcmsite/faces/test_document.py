"""The OpenAPI document tells the truth about every operation, its params, answers and refusals."""

import json
import re

import jsonschema
import pytest
from django.test import Client

from lcmsite.api import views
from lcmsite.catalogue.operation import placeholders
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.ops.documents import PROJECT
from tests.lcmsite.callers import Api, an_api_key
from tests.lcmsite.faces.questions import questions


@pytest.fixture(scope="module")
def answer():
    """Without a key: the document is there for anybody."""
    return Client().get("/api/v1/schema/")


@pytest.fixture(scope="module")
def document(answer):
    return answer.json()


def resolved(responses, document):
    """The responses themselves, where the document refers to them."""
    named = document["components"]["responses"]
    return {
        status: named[response["$ref"].rpartition("/")[2]] if "$ref" in response else response
        for status, response in responses.items()
    }


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.tool)
def test_every_operation_is_told_with_its_refusals_and_with_examples_that_fit(document, operation):
    for path in operation.paths:
        told = document["paths"][f"/api/v1/{path}"][operation.verb.lower()]

        assert told["summary"]
        assert told["security"] == [{"ApiKey": []}]
        assert told["responses"].keys() >= {str(operation.status), "400", "401", "403", "404", "503"}
        for status, response in resolved(told["responses"], document).items():
            assert response["description"]
            if int(status) >= 400:
                assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
        in_path = {each["name"] for each in told["parameters"] if each["in"] == "path"} if placeholders(path) else set()
        assert in_path == set(placeholders(path))
        for parameter in told.get("parameters", ()):
            assert parameter["description"], parameter["name"]
            _validate(parameter["example"], parameter["schema"], document)
        if operation.has_body:
            content = told["requestBody"]["content"]["application/json"]
            _validate(content["example"], content["schema"], document)
            for shape in content["schema"].get("oneOf", [content["schema"]]):
                assert all(field["description"] for field in shape["properties"].values())


def served() -> set[tuple[str, str]]:
    """Every path of version 1 with each verb that it answers, as the document would write them; not its own pages."""
    found = set()
    client = Client(headers={"Authorization": f"Bearer {an_api_key(None, 'admin')}"})
    for pattern in views.urlpatterns:
        path = "/api/v1/" + re.sub(r"<(?:str|path):(\w+)>", r"{\1}", str(pattern.pattern)).removeprefix("api/v1/")
        allowed = client.generic("TRACE", path)
        found |= {(path, verb.lower()) for verb in allowed["Allow"].split(", ") if verb != "HEAD"}
    return found


@pytest.mark.django_db
def test_every_path_that_is_served_is_in_the_document_with_its_verbs(document):
    told = {(path, verb) for path, verbs in document["paths"].items() for verb in verbs}

    assert told == served()


def test_every_operation_has_a_name_of_its_own_that_begins_with_its_resource(document):
    names = {
        told["operationId"]: path.removeprefix("/api/v1/").replace("-", "_")
        for path, verbs in document["paths"].items()
        for told in verbs.values()
    }

    assert len(names) == sum(map(len, document["paths"].values()))
    assert [
        name for name, path in names.items() if not any(name.startswith(f"{part}_") for part in path.split("/"))
    ] == []
    assert {"messages_append", "messages_list", "summaries_expand"} <= names.keys()


def test_the_document_is_small(answer):
    assert len(answer.content) < 800_000


def test_generators_can_read_what_an_append_takes(document):
    """They pass over an operation whose body has parts that are no complete types."""
    body = document["paths"]["/api/v1/conversations/{conversation_id}/messages/"]["post"]["requestBody"]
    forms = body["content"]["application/json"]["schema"]["oneOf"]
    named = [form["properties"]["messages"]["items"]["$ref"].rpartition("/")[2] for form in forms]

    assert named[0] == "NewMessage" and len(named) == 5
    for name in ("NewMessage", "NeutralMessage", "ChatMessage"):
        message = document["components"]["schemas"][name]
        assert message["type"] == "object" and message["properties"] and message["required"] == ["role"]
        assert message.keys().isdisjoint({"anyOf", "oneOf", "allOf", "if"})


def test_streams_are_told_with_what_they_send(document):
    paths = document["paths"]
    ledger = paths["/api/v1/conversations/{conversation_id}/ledger/"]["get"]
    download = paths["/api/v1/files/{file_id}/download/"]["get"]

    assert ledger["responses"]["200"]["content"].keys() == {"application/x-ndjson"}
    assert download["responses"]["206"]["content"].keys() == {"application/octet-stream"}
    for told in (ledger, download):
        assert told["summary"] and told["security"] == [{"ApiKey": []}]
        assert told["responses"].keys() >= {"400", "401", "403", "404", "503"}
        assert all(each["description"] and each["example"] for each in told["parameters"])
    assert "416" in download["responses"] and "416" not in ledger["responses"]


def test_chapters_are_those_of_the_reference_in_its_order(document):
    reference = re.findall(r"^## (.+)$", (PROJECT / "docs" / "reference.md").read_text(), re.M)
    chapters = [tag["name"] for tag in document["tags"]]

    assert chapters == [heading for heading in reference if heading in chapters]
    assert {tag for path in document["paths"].values() for told in path.values() for tag in told["tags"]} == set(
        chapters
    )


def test_links_lead_from_an_id_to_what_is_asked_with_it(document):
    link = document["paths"]["/api/v1/conversations/{conversation_id}/plans/"]["post"]["responses"]["201"]["links"]

    assert link["plans_execute"]["parameters"] == {"path.plan_id": "$response.body#/plan_id"}
    assert link["plans_show"]["operationId"] == "plans_show"


def test_every_reference_in_the_document_leads_somewhere(document):
    names = document["components"]["schemas"].keys()
    text = json.dumps(document)

    referred = {piece.split('"')[0] for piece in text.split("#/components/schemas/")[1:]}

    assert referred <= names
    assert {"Problem", "NewMessage", "MessageRecord"} <= referred


@pytest.mark.sampled(15)
@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.tool)
def test_answers_and_requests_are_as_the_document_says(world, document, operation):
    told = document["paths"][f"/api/v1/{operation.path}"][operation.verb.lower()]

    for given in questions(operation, world):
        if placeholders(operation.path) and not all(name in given for name in placeholders(operation.path)):
            continue
        reply = Api(an_api_key(None, operation.scope, "write")).perform(operation, given)

        # No key may ask what belongs to the whole site.
        assert reply.status == (403 if operation.operator_only else operation.status)
        answer = resolved(told["responses"], document)[str(reply.status)]["content"]["application/json"]["schema"]
        _validate(reply.body, answer, document)
        if operation.has_body:
            body = {name: value for name, value in given.items() if name not in placeholders(operation.path)}
            _validate(body, told["requestBody"]["content"]["application/json"]["schema"], document)


def test_a_refusal_is_as_the_document_says(document, db):
    reply = Api(an_api_key()).get("conversations/", limit=0)

    _validate(reply.body, {"$ref": "#/components/schemas/Problem"}, document)


def _validate(value, schema, document):
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def test_the_document_has_a_page_that_asks_nobody_else(client):
    page = client.get("/api/v1/docs/")

    assert page.status_code == 200
    assets = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.content.decode())
    assert len(assets) >= 3
    assert {client.get(asset).status_code for asset in assets} == {200}
    assert b"//cdn" not in page.content
    assert b"https://" not in page.content
