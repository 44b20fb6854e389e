"""An erasure reaches the map runs over the files that it removes."""

from __future__ import annotations

import pytest

from conversations.errors import Conflict, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import LargeFile
from integrity.retention.erasure import Erasures
from retrieval.map.map_operator import MapOperator
from retrieval.map.models import MapItem, MapRun
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
    first = completed(a_map_run())
    second = completed(a_map_run(input_file_id=first.output_file_id, conversation_id=first.conversation_id))
    what = {} if is_whole else {"file_ids": [first.input_file_id]}

    preview, _ = erased(Erasures.from_settings(), first.conversation_id, **what)

    written = {first.output_file_id, second.output_file_id}
    assert written <= {each.file_id for each in preview.files}
    assert LargeFile.objects.filter(pk__in=written, erased_by=None).count() == 0
    for file_id in written:
        with pytest.raises(NotFound):
            LargeFileService.from_settings().read(file_id=file_id)
    second.refresh_from_db()
    assert set(second.items.values_list("input", "output")) == {("", "")}
    assert checked() == {}


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
