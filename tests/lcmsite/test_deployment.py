"""Behind TLS everything is strict; and nobody sends more than is taken, on any path."""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.lcmsite.operating import run_python

# Asks a site of these settings, which are read once in a process.
ASK = """
import json, django
django.setup()
from django.test import Client
secure = Client(headers={"host": "lcm.example"})
page = secure.get("/login/", secure=True)
plain = secure.get("/login/")
print(json.dumps({
    "status": page.status_code,
    "headers": dict(page.headers),
    "cookies": {name: {"secure": bool(m["secure"]), "httponly": bool(m["httponly"]), "samesite": m["samesite"]}
                for name, m in page.cookies.items()},
    "plain": [plain.status_code, plain.headers.get("Location")],
    "alive": secure.get("/healthz").status_code,
    "api": [secure.get("/api/v1/conversations/").status_code,
            secure.get("/api/v1/conversations/", headers={"X-Forwarded-Proto": "https"}).status_code],
}))
"""


def ran(tmp_path: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    strict = {
        "LCM_DATA_DIR": str(tmp_path / "var"),
        "LCM_HTTPS": "true",
        "LCM_SECRET_KEY": secrets.token_urlsafe(64),
        "LCM_ALLOWED_HOSTS": "lcm.example",
        "LCM_LOG_LEVEL": "ERROR",
        "DJANGO_SETTINGS_MODULE": "lcmsite.settings",
    }
    return run_python(*arguments, **strict | settings)


@pytest.mark.thorough
def test_djangos_deployment_checks_find_nothing(tmp_path):
    checked = ran(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "INFO")

    assert checked.returncode == 0, checked.stderr


@pytest.mark.thorough
def test_they_do_find_a_key_that_is_weak(tmp_path):
    checked = ran(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING", LCM_SECRET_KEY="weak")

    assert checked.returncode == 1
    assert "security.W009" in checked.stderr


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    asked = ran(tmp_path_factory.mktemp("strict"), "-c", ASK)
    assert asked.returncode == 0, asked.stderr
    return json.loads(asked.stdout)


@pytest.mark.thorough
def test_cookies_go_over_tls_alone_and_to_no_script(strict):
    assert strict["status"] == 200
    assert strict["cookies"]
    for name, cookie in strict["cookies"].items():
        assert cookie["secure"] and cookie["httponly"], name
        assert cookie["samesite"] in ("Lax", "Strict"), name


def test_browsers_are_told_to_stay_with_tls(strict):
    told = strict["headers"]["Strict-Transport-Security"]

    assert "max-age=31536000" in told and "includeSubDomains" in told
    assert strict["headers"]["X-Content-Type-Options"] == "nosniff"
    assert strict["headers"]["X-Frame-Options"] == "DENY"


def test_what_comes_without_tls_is_sent_to_it_but_for_probes(strict):
    assert strict["plain"] == [301, "https://lcm.example/login/"]
    assert strict["alive"] == 200
    assert strict["api"] == [301, 401]


PATHS = ("/", "/login/", "/admin/login/", "/w/default/import/", "/metrics", "/healthz", "/api/v1/conversations/", "/no")


@pytest.mark.django_db
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=x", "text/plain"])
def test_a_body_that_is_too_large_is_refused_on_every_path(path, kind, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000

    refused = Client().generic("POST", path, b"x" * 1001, content_type=kind)

    assert refused.status_code == 413
    if path.startswith(settings.MACHINE_PATHS):
        assert refused.json()["code"] == "request_too_large"
    else:
        assert "LCM_MAX_REQUEST_BYTES" in refused.content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize("length", ["-1", "many", "1e3", "٣"])
def test_a_length_that_is_none_is_refused(length):
    assert Client().generic("POST", "/login/", b"x", CONTENT_LENGTH=length).status_code == 400
