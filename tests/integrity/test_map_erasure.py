"""An erasure reaches the map runs over the files that it removes."""

from __future__ import annotations

import pytest

from conversations.errors import Conflict
from integrity.retention.erasure import Erasures
from retrieval.map.map_operator import MapOperator
from retrieval.map.models import MapItem, MapRun
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
