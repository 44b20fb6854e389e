"""An erasure reaches the map runs over the files that it removes."""

from __future__ import annotations

import pytest
from django.core.files.storage import default_storage

from conversations.errors import Conflict, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import LargeFile
from integrity.retention.erasure import Erasures
from retrieval.map.input_items import hash_of_items
from retrieval.map.item_queue import claim_of_run
from retrieval.map.map_operator import MapOperator
from retrieval.map.models import MapItem, MapRun
from retrieval.map.run_output import finish_if_over
from tests.factories import a_conversation
from tests.integrity.breaking import checked
from tests.integrity.erasing import erased
from tests.maps import a_map_run, completed

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_over", [True, False])
def test_prompts_inputs_and_outputs_go_with_the_file_and_the_record_stays_whole(is_over):
    run = a_map_run(prompt="Label the herring of {{item}}.")
    if is_over:
        completed(run)
    other = a_map_run()

    preview, _ = erased(Erasures.from_settings(), run.conversation_id, file_ids=[run.input_file_id])

    assert {each.what: each.is_erased for each in preview.texts_elsewhere}["map run over a file"]
    run.refresh_from_db()
    assert (run.prompt, run.state) == ("{{item}}", "cancelled")
    assert set(run.items.values_list("input", "output")) == {("", "" if is_over else None)}
    assert MapItem.objects.filter(run=other).exclude(input="").count() == other.total
    assert MapRun.objects.get(pk=other.pk).prompt == other.prompt
    assert checked() == {}
    with pytest.raises(Conflict):
        MapOperator.from_settings().retry_failed(run_id=run.pk)


@pytest.mark.parametrize("is_whole", [True, False])
def test_files_that_runs_wrote_from_an_erased_file_go_with_it(is_whole):
    first = a_map_run(max_attempts=1)
    [lease] = claim_of_run(run_id=first.pk, worker="test", count=1, lease_seconds=30)
    lease.refuse(["no label"], "no label", actor="test")
    before_the_retry = {completed(first).output_file_id, first.failures_file_id}
    MapOperator.from_settings().retry_failed(run_id=first.pk)
    completed(first)
    second = completed(a_map_run(input_file_id=first.output_file_id, conversation_id=first.conversation_id))
    what = {} if is_whole else {"file_ids": [first.input_file_id]}

    preview, _ = erased(Erasures.from_settings(), first.conversation_id, **what)

    written = {first.output_file_id, second.output_file_id, *before_the_retry}
    assert written <= {each.file_id for each in preview.files}
    assert LargeFile.objects.filter(pk__in=written, erased_by=None).count() == 0
    for file_id in written:
        with pytest.raises(NotFound):
            LargeFileService.from_settings().read(file_id=file_id)
    second.refresh_from_db()
    assert set(second.items.values_list("input", "output")) == {("", "")}
    assert checked() == {}


def test_an_erasure_while_a_run_is_submitted_refuses_the_run(monkeypatch):
    first, elsewhere = a_map_run(), a_conversation("elsewhere").conversation_id

    def hashed_and_erased(items):
        monkeypatch.undo()
        erased(Erasures.from_settings(), first.conversation_id, file_ids=[first.input_file_id])
        return hash_of_items(items)

    monkeypatch.setattr("retrieval.map.submission.hash_of_items", hashed_and_erased)

    with pytest.raises(NotFound):
        a_map_run(input_file_id=first.input_file_id, conversation_id=elsewhere)

    assert set(MapItem.objects.values_list("input", flat=True)) == {""} and checked() == {}


def test_an_erasure_while_an_output_is_written_leaves_no_bytes(monkeypatch, django_capture_on_commit_callbacks):
    run = a_map_run()
    for lease in claim_of_run(run_id=run.pk, worker="test", count=8, lease_seconds=30):
        lease.complete('{"label":"herring"}', actor="test")
    keep, kept = LargeFileService.keep, []

    def kept_and_erased(*args, **values):
        kept.append(keep(*args, **values))
        erased(Erasures.from_settings(), run.conversation_id, file_ids=[run.input_file_id])
        return kept[0]

    monkeypatch.setattr(LargeFileService, "keep", kept_and_erased)

    with django_capture_on_commit_callbacks(execute=True):
        finish_if_over(run.pk, actor="test")

    assert [default_storage.exists(file.storage_uri) for file in kept] == [False]


def test_a_file_that_a_run_wrote_in_another_conversation_stays_and_is_listed():
    first = a_map_run()
    other = completed(
        a_map_run(input_file_id=first.input_file_id, conversation_id=a_conversation("elsewhere").conversation_id)
    )

    preview, _ = erased(Erasures.from_settings(), first.conversation_id)

    elsewhere = {each.what: (each.count, each.is_erased) for each in preview.texts_elsewhere}
    assert elsewhere["output of a map run in another conversation"] == (1, False)
    assert elsewhere["output_schema and delegation of a map run"] == (2, False)
    assert LargeFile.objects.get(pk=other.output_file_id).erased_by_id is None
    assert checked() == {}
