"""What a caller may say to retention, to an erasure and to the audit log."""

from __future__ import annotations

from conversations.audit import Act
from conversations.param_fields import Choice, ConversationId, Id, MessageId, Several, Text, WholeNumber
from conversations.params import ConversationParams, Params
from integrity.policy import MOST_DAYS
from integrity.retention.erasure import MOST_NAMED

MOST_FILES = 1_000
MOST_ACTS = 1_000


class ArchiveParams(ConversationParams):
    """The conversation whose texts are to move to the cold tier."""


class ThawParams(ConversationParams):
    """The conversation whose texts are to come back."""


class RetentionParams(Params):
    """The workspace of the caller."""


class SetRetentionParams(Params):
    cold_after_days = WholeNumber(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_DAYS,
        help_text="Days without use after which texts go cold; left out, the site's default holds.",
    )


class StorageParams(Params):
    """The workspace of the caller."""


class PreviewErasureParams(ConversationParams):
    from_seq = WholeNumber(required=False, allow_null=True, min_value=1, help_text="The first message of a range.")
    to_seq = WholeNumber(required=False, allow_null=True, min_value=1, help_text="The last message of the range.")
    message_ids = Several(
        child=MessageId(), required=False, max_length=MOST_NAMED, help_text="Messages by their ids, beside the range."
    )
    file_ids = Several(
        child=Text(max_length=200),
        required=False,
        max_length=MOST_FILES,
        help_text="Files by their ids, whoever else names them.",
    )


class EraseParams(Params):
    erasure_id = Text(max_length=200, help_text="The previewed erasure (era_...).")
    confirmation = Text(max_length=500, help_text="What the preview asks to be typed, letter by letter.")


class ListActsParams(Params):
    conversation_id = ConversationId(required=False, allow_null=True, help_text="Only what was done to this one.")
    act = Choice(
        choices=[each.value for each in Act], required=False, allow_null=True, help_text="Only acts of this kind."
    )
    target = Text(
        required=False,
        allow_null=True,
        max_length=200,
        help_text="Only what was done to this: msg_12, repair_..., key 7.",
    )
    before_id = Id(required=False, allow_null=True, help_text="Only what was done before this act.")
    limit = WholeNumber(required=False, min_value=1, max_value=MOST_ACTS, help_text="The most acts to list.")
