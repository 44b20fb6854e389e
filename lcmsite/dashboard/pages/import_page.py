"""A history that was held elsewhere, brought in from a file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect

from conversations.errors import Invalid
from conversations.humanize import counted
from conversations.store.conversations import ConversationStore
from lcmsite.dashboard.page import Visit, page
from lcmsite.importing.history import History
from lcmsite.importing.importer import Importer
from lcmsite.types import KeyScope


@page(KeyScope.WRITE, methods=("GET", "HEAD", "POST"))
def imported(visit: Visit) -> HttpResponse:
    """The form, and what it sends: stored in batches, and taken up again where an earlier attempt stopped."""
    if visit.request.method != "POST":
        return visit.show("dashboard/import.html")
    file = visit.request.FILES.get("file")
    if not isinstance(file, UploadedFile) or not file.size:
        raise Invalid("Choose a file that is not empty.")
    with tempfile.TemporaryDirectory(prefix="lcm-import-") as directory:
        # Under its own name, which is the session's unless the messages or the form say another.
        path = Path(directory) / Path(file.name or "history").name
        with path.open("wb") as copy:
            for chunk in file.chunks():
                copy.write(chunk)
        history = History(path=path, session=visit.request.POST.get("session", "").strip())
        found = Importer(ConversationStore.from_settings(visit.caller.scope), history).run(on_batch=lambda: None)
    new = sum(each.created for each in found)
    known = sum(each.stored_before for each in found)
    stored = f"{counted(new, 'message')} stored"
    beside = [f"{known:,} were there already"] if known else []
    if passed_over := history.passed_over.total():
        beside.append(f"{counted(passed_over, 'line')} without a message passed over")
    messages.success(visit.request, f"{', '.join([stored, *beside])}.")
    if len(found) == 1:
        return redirect("transcript", workspace=visit.workspace.name, conversation_id=found[0].conversation_id)
    return redirect("conversations", workspace=visit.workspace.name)
