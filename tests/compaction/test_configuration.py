"""Which models there are is read from the settings; what is missing is named, and no key is ever shown."""

from __future__ import annotations

from dataclasses import fields

import pytest

from compaction.llm.configuration import ModelsPolicy, chain_of, require_configured_chain
from compaction.llm.types import Misconfigured, ModelFailed
from compaction.policy import CompactionPolicy
from conversations.errors import Invalid
from conversations.policy import Secret, SecretFile, check_overrides
from lcmsite.environment import Environment
from tests.compaction.model_settings import KEY, models, shown
from tests.factories import a_conversation, a_store


def test_without_settings_there_is_no_model_and_none_is_needed(settings):
    settings.LCM = {}

    assert all(ModelsPolicy.from_settings().missing(name) for name in ("chat", "anthropic"))
    require_configured_chain(CompactionPolicy.from_settings().summarizer)


def test_a_key_file_is_read_when_the_key_is_needed(tmp_path):
    file = tmp_path / "key"
    policy = models(anthropic_key=SecretFile(str(file)))
    file.write_text(f"\ufeff  {KEY}\n")

    first = policy.endpoint("anthropic").key
    file.write_text("another\n")

    assert first == KEY
    assert policy.endpoint("anthropic").key == "another"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "key cannot be read (No such file or directory)"),
        (b"", "key is empty"),
        (b" \n\t\n", "key is empty"),
        (KEY.encode() * 1000, "key is too long for a secret"),
        (f"{KEY}\n{KEY}\n".encode(), "blank, a line break"),
        (KEY.encode() + b"\xff\xfe", "beyond ASCII"),
    ],
)
def test_a_key_file_without_a_key_is_told_by_its_setting_and_not_by_its_content(tmp_path, content, said):
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(Misconfigured) as refusal:
        models(chat_key=SecretFile(str(file))).endpoint("chat")

    assert said in str(refusal.value)
    assert "chat" in str(refusal.value).lower()
    assert KEY not in shown(refusal.value)
    assert refusal.value.reason == "misconfigured"
    assert isinstance(refusal.value, ModelFailed)


@pytest.mark.parametrize(
    ("path", "told"), [("~nobody-at-all/key", " ~nobody-at-all/key"), ("/", " /"), ("nul\x00byte", ""), (KEY, "")]
)
def test_a_path_is_told_unless_it_may_be_the_key_itself(path, told):
    with pytest.raises(Misconfigured, match=f"LCM_CHAT_KEY_FILE: the file{told} cannot be read") as refusal:
        models(chat_key=SecretFile(path)).endpoint("chat")

    assert KEY not in str(refusal.value)


def test_the_vendor_wants_a_key_and_a_server_of_ones_own_may_not():
    at_home = ModelsPolicy(anthropic_model="m", anthropic_url="http://127.0.0.1:8080")

    assert ModelsPolicy(anthropic_model="m").missing("anthropic") == ("LCM_ANTHROPIC_KEY",)
    assert ModelsPolicy(anthropic_model="m", anthropic_key="k").missing("anthropic") == ()
    assert ModelsPolicy(anthropic_model="m", anthropic_key=SecretFile("f")).missing("anthropic") == ()
    assert at_home.missing("anthropic") == ()


def test_a_chain_is_the_order_in_which_summarizers_are_asked():
    assert chain_of("extractive") == ("extractive",)
    assert chain_of(" chat, anthropic ,extractive") == ("chat", "anthropic", "extractive")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'' is unknown; give one or several of extractive, chat, anthropic"),
        ("chat,", "'' is unknown"),
        ("gpt", "'gpt' is unknown"),
        ("Chat", "'Chat' is unknown"),
        ("chat,chat", "'chat' is named twice"),
        ("extractive,chat", "'chat' would never be called"),
        ("chat,extractive", "'chat' is not configured: LCM_CHAT_MODEL is not set."),
        ("anthropic", "'anthropic' is not configured: LCM_ANTHROPIC_MODEL and LCM_ANTHROPIC_KEY are not set."),
    ],
)
def test_a_chain_that_cannot_be_is_refused_with_what_is_missing(settings, text, said):
    settings.LCM = {"chat_url": "http://127.0.0.1:9"}

    with pytest.raises(Invalid) as refusal:
        require_configured_chain(text)

    assert said in refusal.value.detail


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"summarizer": "anthropic"}, "'anthropic' is not configured: LCM_ANTHROPIC_MODEL and LCM_ANTHROPIC_KEY"),
        ({"summarizer": "nobody"}, "'nobody' is unknown"),
        ({"summarizer": 5}, "5 is not a text"),
        ({"summary_instructions": "x" * 2001}, "a text of 2,001 characters is too long: at most 2,000 are taken"),
        ({"summary_instructions": "NUL \x00"}, "NUL or lone surrogates"),
        ({"summary_instructions": "half \ud800"}, "NUL or lone surrogates"),
        ({"chat_key": KEY}, "'chat_key' is not a setting of a conversation"),
    ],
)
def test_what_a_conversation_cannot_have_is_refused_when_it_is_saved(settings, own, said):
    settings.LCM = {"chat_url": "http://127.0.0.1:9/v1", "chat_model": "small"}
    conversation = a_conversation()

    with pytest.raises(Invalid) as refusal:
        a_store().configure_conversation(conversation_id=conversation.conversation_id, overrides=own)

    assert said in refusal.value.detail
    assert a_store().get_conversation(conversation_id=conversation.conversation_id).overrides == {}


def test_settings_of_other_policies_are_not_asked_whether_they_are_possible(settings):
    settings.LCM = {"summarizer": "chat"}

    assert check_overrides({}) == {}
    with pytest.raises(Invalid, match="'chat' is not configured"):
        check_overrides({"fresh_tail_count": 4})


def test_no_key_of_the_environment_shows_in_what_holds_it():
    environment = Environment.read(
        {
            "LCM_CHAT_KEY": KEY,
            "LCM_ANTHROPIC_KEY": KEY,
            "LCM_SECRET_KEY": KEY,
            "LCM_API_KEY": KEY,
            "LCM_DATABASE_URL": f"postgres://me:{KEY}@host/db",
            "LCM_CHAT_KEYS": KEY,
        }
    )
    policy = ModelsPolicy(**environment.overrides)

    assert policy.chat_key == KEY
    assert environment.deployment.database_url.endswith(f"{KEY}@host/db")
    assert [problem.id for problem in environment.problems] == ["lcm.E001"]
    for holder in (environment, environment.overrides, environment.deployment, environment.problems, policy):
        assert KEY not in repr(holder)
    assert KEY not in repr(models(chat_key=Secret(KEY)).endpoint("chat"))


def test_every_setting_that_is_a_key_is_marked_secret():
    secrets = {each.name for each in fields(ModelsPolicy) if each.metadata.get("secret")}

    assert secrets == {each.name for each in fields(ModelsPolicy) if each.name.endswith("_key")}
    assert all(not each.repr for each in fields(ModelsPolicy) if each.name in secrets)
