"""Questions to one small conversation full of code, in many scripts: what answers them is among the first five."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.types import NewMessage, Role
from tests.factories import a_conversation, a_store
from tests.retrieval.lineages import engine

TALK = [
    (Role.USER, "Can you find out why the nightly backup fails?"),
    (Role.ASSISTANT, "I will look at the cron job first."),
    (Role.TOOL, "$ crontab -l\n0 3 * * * /opt/backup/run_backup.sh --target s3://archive-eu/db"),
    (Role.ASSISTANT, "The script calls `pg_dump` and uploads with `uploadToBucket()` from src/backup/s3-client.ts."),
    (Role.TOOL, "src/backup/s3-client.ts:41: throw new AccessDeniedError('missing s3:PutObject')"),
    (Role.ASSISTANT, "So the bucket policy lacks PutObject for the backup role."),
    (Role.USER, "Which role is that?"),
    (Role.ASSISTANT, "arn:aws:iam::123456789012:role/backup-writer; it was rotated in commit 9fceb02a7d1e."),
    (Role.USER, "Please write the fix and tell me which port the replica listens on."),
    (Role.ASSISTANT, "It listens on 5433, behind pgbouncer."),
    (Role.TOOL, "def max_retry_count(self):\n    return self.MAX_RETRIES or DEFAULT_RETRY_LIMIT"),
    (Role.ASSISTANT, "I raised MAX_RETRIES from 3 to 5 in config/settings.py."),
    (Role.USER, "我们的数据库备份为什么失败了?"),
    (Role.ASSISTANT, "因为PostgreSQL的存储桶没有写入权限,已经修复了。"),
    (Role.USER, "エラーメッセージを日本語で説明してください。"),
    (Role.ASSISTANT, "アクセス権限がないため、バックアップの保存に失敗しました。"),
    (Role.USER, "백업 서버의 주소가 뭐였지?"),
    (Role.ASSISTANT, "백업 서버는 backup.internal 입니다."),
    (Role.USER, "¿Dónde está la configuración de producción?"),
    (Role.ASSISTANT, "La configuración está en /etc/lcm/production.yaml."),
    (Role.USER, "Где лежит журнал ошибок?"),
    (Role.ASSISTANT, "Журнал лежит в /var/log/backup/error.log."),
    (Role.USER, "Zeig mir die Größe der Tabelle für Überweisungen."),
    (Role.ASSISTANT, "Die Tabelle für Überweisungen hat 12 GB."),
    (Role.TOOL, "Traceback (most recent call last):\n  File \"app.py\", line 7\nKeyError: 'userId'"),
    (Role.ASSISTANT, "The handler HTTPRequestParser.parseBody reads userId before validateSession ran."),
    (Role.USER, "Thanks! What did we decide about the retention of archives?"),
    (Role.ASSISTANT, "Ninety days, then they move to cold storage."),
    (Role.USER, "The dashboard is empty since the last deploy 🎉 what did we break?"),
    (Role.ASSISTANT, "`getSummary` in summary-store returns null; see src/store/x.ts:42."),
    (Role.TOOL, "Error: connect ECONNREFUSED 10.0.4.17:6379\n    at TCPConnectWrap.afterConnect (node:net:1595:16)"),
    (Role.ASSISTANT, "Redis refuses connections, so SummaryStore falls back to its in-memory cache."),
    (Role.TOOL, "+++ b/src/store/x.ts\n-  const row = await this.redis.hgetall(key);\n+  if (!this.pool) return null;"),
    (Role.USER, "Can we call it as store.getSummary(id, {fresh: true}) instead of loadSummary?"),
    (Role.ASSISTANT, "No: loadSummary is deprecated, RFC-2119 wording in docs/adr/0007-cache.md says MUST NOT."),
    (Role.TOOL, "HTTP/1.1 429 Too Many Requests\nRetry-After: 30\nX-Request-Id: 7f3c-99ab"),
    (Role.ASSISTANT, "Rate limiting: the token bucket allows 20 requests a minute."),
    (Role.USER, "我的密码忘记了,怎么重置?"),
    (Role.ASSISTANT, "点击登录页面上的链接即可重置密码。"),
    (Role.USER, "東京のサーバーは遅いですか?"),
    (Role.ASSISTANT, "はい、東京リージョンの遅延は120ミリ秒です。"),
    (Role.USER, "결제 오류가 왜 생겼어?"),
    (Role.ASSISTANT, "결제 모듈의 인증서가 만료되었습니다."),
    (Role.USER, "Où est passé le fichier déjà téléchargé ?"),
    (Role.ASSISTANT, "Le fichier est dans ~/Téléchargements/relevé.pdf."),
    (Role.USER, "Nasıl çalışır bu önbellek?"),
    (Role.ASSISTANT, "Önbellek TTL_SECONDS=900 ile çalışır."),
    (Role.USER, "Σε ποιον διακομιστή τρέχει η βάση;"),
    (Role.ASSISTANT, "Η βάση τρέχει στον διακομιστή athena-02."),
    (Role.TOOL, "npm ERR! peer dep missing: react@>=18.2.0, required by @acme/ui-kit@4.1.0"),
    (Role.ASSISTANT, "Pin `react` to 18.3.1 in package.json; ui-kit has no release for 19 yet. 🚀"),
    (Role.TOOL, "FAILED tests/test_parser.py::test_empty_input - AssertionError: assert None == []"),
    (Role.ASSISTANT, "parse_input() returns None for an empty string; it should be an empty list."),
    (Role.TOOL, "SELECT user_id, count(*) FROM login_attempts WHERE failed_at > now() - interval '1 hour' GROUP BY 1"),
    (Role.ASSISTANT, "Only three accounts were locked; the attack came from 203.0.113.9."),
    (Role.USER, "Use blue green deployment, not a rolling one."),
    (Role.ASSISTANT, "Then green goes live first and blue stays for a rollback."),
]
FILLER = [(Role.USER, f"Let us go on with item {number} of the list.") for number in range(40)]

# Which seqs of the talk (from 1) answer: every one of them has to be among the first five.
QUESTIONS = [
    # In words, and by what the answer shares no word with.
    ("why does the nightly backup fail", {1, 2, 3, 4}),
    ("Which role was rotated?", {7, 8}),
    ("Which port does the replica listen on?", {9, 10}),
    ("What did we decide about retention?", {27, 28}),
    ("Which accounts were locked?", {55}),
    ("What does the cache fall back to?", {32}),
    ("How many requests a minute are allowed?", {36, 37}),
    ("Where did the attack come from?", {55}),
    ("why is the dashboard empty", {29, 30}),
    # Names, paths, numbers and codes: whole, by their parts, and as words.
    ("src/backup/s3-client.ts", {4, 5}),
    ("uploadToBucket", {4}),
    ("AccessDeniedError", {5}),
    ("9fceb02a7d1e", {8}),
    ("max_retries", {11, 12}),
    ("MAX_RETRIES 5", {12}),
    ("KeyError userId", {25, 26}),
    ("http request parser", {26}),
    ("production.yaml", {20}),
    ("getSummary", {30, 34}),
    ("get_summary", {30, 34}),
    ("Where is getSummary called?", {30, 34}),
    ("summary-store", {30, 32}),
    ("summary store cache", {30, 32}),
    ("src/store/x.ts:42", {30}),
    ("src/store/x.ts:7", {30, 33}),
    ("x.ts:7:12: error", {30, 33}),
    ("src/store/x.ts", {30, 33}),
    ("connection refused", {31, 32}),
    ("10.0.4.17:6379", {31}),
    ("loadSummary", {34, 35}),
    ("@acme/ui-kit", {50}),
    ("-src/store/x.ts", {30, 33}),
    ("-- -docs/adr/0007-cache.md", {35}),
    ("--target", {3}),
    # Phrases, alternatives, exclusions.
    ('"cold storage"', {28}),
    ('"must not"', {35}),
    ('"token bucket"', {37}),
    ('"blue green"', {56}),
    ("rollback or athena", {49, 57}),
    ("summary -loadSummary", {30, 32}),
    ("backup -bucket", {1, 3}),
    # Scripts without spaces, down to two characters and to one.
    ("数据库备份", {13}),
    ("备份", {13}),
    ("PostgreSQL 存储桶", {14}),
    ("桶", {14}),
    ("アクセス権限", {16}),
    ("서버", {17, 18}),
    # Accents, said or not; other alphabets; emoji.
    ("configuracion produccion", {19, 20}),
    ("Überweisungen", {23, 24}),
    ("telecharge", {44, 45}),
    ("relevé.pdf", {45}),
    ("onbellek", {46, 47}),
    ("журнал ошибок", {21, 22}),
    ("в каких журналах ошибки", {21, 22}),
    ("журнал_ошибок", {21}),
    ("διακομιστή", {48, 49}),
    ("🎉", {29}),
]
WITHOUT = [
    ("summary -loadSummary", {34, 35}),
    ("backup -bucket", {4, 6}),
    ("backup -<bucket>", {4, 6}),
    ("react -npm", {50}),
]
ALONE = [
    ("密码", {38, 39}), ("日本語", {15}), ("東京", {40, 41}), ("결제", {42, 43}), ("만료되었습니다", {43}),
    ("遅延", {41}), ("エラーメッセージ", {15}), ("サーバー", {40}), ("kubernetes", set()),
]  # fmt: skip


@pytest.fixture(scope="module")
def conversation_id(module_rows: None) -> int:
    store, conversation = a_store(), a_conversation()
    turns = [*FILLER[:20], *TALK, *FILLER[20:]]
    store.append_messages(
        conversation_id=conversation.conversation_id, messages=[NewMessage(role, text) for role, text in turns]
    )
    return conversation.conversation_id


def found(query: str, conversation_id: int, **asked: Any) -> list[int]:
    result = engine().grep(query=query, conversation_id=conversation_id, limit=5, **asked)
    return [match.first_seq - 20 for match in result.matches]


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("query", "answers"), QUESTIONS)
def test_the_answers_are_among_the_first_five(query, answers, conversation_id):
    assert answers <= set(found(query, conversation_id))


@pytest.mark.parametrize(("query", "never"), WITHOUT)
def test_what_is_excluded_is_not_there(query, never, conversation_id):
    assert not never & set(found(query, conversation_id))


@pytest.mark.parametrize(("query", "answers"), ALONE)
def test_one_word_of_a_script_without_spaces_finds_what_holds_it_and_nothing_beside(query, answers, conversation_id):
    assert set(found(query, conversation_id)) == answers
    assert set(found(query, conversation_id, sort="recency")) == answers
