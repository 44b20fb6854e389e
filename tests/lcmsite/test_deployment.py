"""Behind TLS everything is strict; and nobody sends more than is taken, on any path."""

from __future__ import annotations

import re
import runpy
import secrets
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client, override_settings

from lcmsite.ops import logs
from tests.lcmsite.operating import PROJECT, run_python


def strict_environment(tmp_path: Path) -> dict[str, str]:
    return {
        "LCM_DATA_DIR": str(tmp_path / "var"),
        "LCM_HTTPS": "true",
        "LCM_SECRET_KEY": secrets.token_urlsafe(64),
        "LCM_ALLOWED_HOSTS": "lcm.example",
        "LCM_LOG_LEVEL": "ERROR",
        # For the command line, and good settings all the same.
        "LCM_API_KEY": "something",
        "LCM_WORKSPACE": "something",
        "DJANGO_SETTINGS_MODULE": "lcmsite.settings",
    }


@pytest.mark.thorough
def test_djangos_deployment_checks_find_nothing_but_a_key_that_is_weak(tmp_path):
    check, given = ("manage.py", "check", "--deploy", "--fail-level", "INFO"), strict_environment(tmp_path)

    checked, weak = run_python(*check, **given), run_python(*check, **given | {"LCM_SECRET_KEY": "weak"})

    assert checked.returncode == 0, checked.stderr
    assert (weak.returncode, "security.W009" in weak.stderr) == (1, True)


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Client]:
    """A client of a site that such an environment makes."""
    for name, value in strict_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    # A process has them set once, and the tests have been.
    for name in ("set_up_loggers", "log_what_python_prints"):
        monkeypatch.setattr(logs, name, lambda: None)
    made = runpy.run_path(str(PROJECT / "lcmsite" / "settings.py"))
    own = {name: value for name, value in made.items() if name.startswith(("SECURE_", "SESSION_", "CSRF_", "ALLOWED_"))}
    with override_settings(**own):
        yield Client(headers={"host": "lcm.example"})


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1:8000", 200), ("lcm.example", 200), ("other.example", 400)])
def test_a_probe_on_the_machine_needs_no_allowed_host(strict, host, status):
    assert strict.get("/healthz", headers={"host": host}).status_code == status


def test_the_container_has_every_file_that_the_code_links_to(tmp_path):
    copied = re.findall(r"^COPY (?:\S+ )*?(\S+) (\1|\./)$", (PROJECT / "Containerfile").read_text(), re.MULTILINE)
    for source in (source for source, target in copied if source == target):
        shutil.copytree(PROJECT / source, tmp_path / source, symlinks=True)
    packages = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]["find"]

    links = [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert links and [link for link in links if not link.exists()] == []
    assert all((tmp_path / name.removesuffix("*")).is_dir() for name in packages["include"])


def test_behind_tls_browsers_stay_with_it_and_cookies_go_over_it_alone(strict):
    page = strict.get("/login/", secure=True)

    told = page.headers["Strict-Transport-Security"]
    assert "max-age=31536000" in told and "includeSubDomains" in told
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.status_code == 200 and page.cookies
    for name, cookie in page.cookies.items():
        assert cookie["secure"] and cookie["httponly"], name
        assert cookie["samesite"] in ("Lax", "Strict"), name


def test_what_comes_without_tls_is_sent_to_it_but_for_probes(strict):
    plain = strict.get("/login/")
    by_proxy = strict.get("/api/v1/conversations/", headers={"X-Forwarded-Proto": "https"})

    assert (plain.status_code, plain.headers["Location"]) == (301, "https://lcm.example/login/")
    assert strict.get("/healthz").status_code == 200
    assert (strict.get("/api/v1/conversations/").status_code, by_proxy.status_code) == (301, 401)
