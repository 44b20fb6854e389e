"""Twenty-odd questions to one small conversation full of code, in many scripts: the answer is among the first five."""

from __future__ import annotations

import pytest

from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_workspace

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
]
FILLER = [(Role.USER, f"Let us go on with item {number} of the list.") for number in range(40)]

# Which seqs (from 1) answer; one of them has to be among the first five.
QUESTIONS = [
    ("why does the nightly backup fail", {1, 2, 3, 4, 5, 6}),
    ("run_backup.sh", {3}),
    ("s3-client.ts", {4, 5}),
    ("src/backup/s3-client.ts", {4, 5}),
    ("uploadToBucket", {4}),
    ("upload bucket", {4}),
    ("AccessDeniedError", {5}),
    ("access denied", {5}),
    ("PutObject", {5, 6}),
    ("9fceb02a7d1e", {8}),
    ("Which role was rotated?", {7, 8}),
    ("Which port does the replica listen on?", {9, 10}),
    ("pgbouncer port", {10}),
    ("max_retries", {11, 12}),
    ("max retry count", {11}),
    ("MAX_RETRIES 5", {12}),
    ("settings.py", {12}),
    ("数据库备份", {13}),
    ("备份", {13}),
    ("权限", {14}),
    ("PostgreSQL 存储桶", {14}),
    ("桶", {14}),
    ("エラー", {15}),
    ("アクセス権限", {16}),
    ("서버", {17, 18}),
    ("configuracion produccion", {19, 20}),
    ("configuración", {19, 20}),
    ("журнал ошибок", {21, 22}),
    ("Grosse Uberweisungen", {23, 24}),
    ("Überweisungen", {23, 24}),
    ("KeyError userId", {25, 26}),
    ("http request parser", {26}),
    ("parseBody", {26}),
    ("validate session", {26}),
    ('"cold storage"', {28}),
    ("What did we decide about retention?", {27, 28}),
    ("archive-eu", {3}),
    ("production.yaml", {20}),
    ("error.log", {22}),
]


@pytest.fixture
def conversation_id(db) -> int:
    store, conversation = a_store(), a_conversation()
    turns = [*FILLER[:20], *TALK, *FILLER[20:]]
    store.append_messages(
        conversation_id=conversation.conversation_id, messages=[NewMessage(role, text) for role, text in turns]
    )
    return conversation.conversation_id


@pytest.mark.parametrize(("query", "answers"), QUESTIONS)
def test_the_answer_is_among_the_first_five(query, answers, conversation_id):
    result = RetrievalEngine.from_settings(Scope(a_workspace().pk)).grep(
        query=query, conversation_id=conversation_id, limit=5
    )

    assert answers & {match.first_seq - 20 for match in result.matches}, [m.snippet.text for m in result.matches]
