"""Django settings; only `lcmsite.environment` reads the environment."""

import os
import secrets
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.checks import Error

from lcmsite.embedded_postgres.location import DATABASE, PORT, ROLE, Location
from lcmsite.environment import Environment, load_secret_key, secrets_in
from lcmsite.ops.logs import log_what_python_prints, logging_settings, set_up_loggers
from lcmsite.queues import queue_settings, with_timeouts

ENVIRONMENT = Environment.read(os.environ)
DEPLOYMENT = ENVIRONMENT.deployment

# `lcmsite.ops.checks` reports these problems; the settings load in spite of them.
CONFIGURATION_PROBLEMS = [*ENVIRONMENT.problems]

# The environment's overrides of the rooms' policies; the policies have the defaults.
LCM = dict(ENVIRONMENT.overrides)

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(DEPLOYMENT.data_dir).expanduser().absolute() if DEPLOYMENT.data_dir else BASE_DIR / "var"

DEBUG = False
ALLOWED_HOSTS = [host.strip() for host in DEPLOYMENT.allowed_hosts.split(",") if host.strip()]
# Always allowed, for probes on this machine.
ALLOWED_HOSTS += {"127.0.0.1"} - {*ALLOWED_HOSTS}

try:
    SECRET_KEY = DEPLOYMENT.secret_key or load_secret_key(DATA_DIR)
except OSError as refusal:
    # A key for this process only, so that it can report the problem instead of a traceback.
    SECRET_KEY = secrets.token_urlsafe(64)
    CONFIGURATION_PROBLEMS.append(
        Error(
            f"No secret key can be stored in {DATA_DIR}: {refusal.strerror}.",
            hint="Set LCM_DATA_DIR to a directory that LCM may write to, or set LCM_SECRET_KEY.",
            id="lcm.E003",
        )
    )

# A model's answer that contains one of these is discarded. The model's own API key is added where it is called.
SECRETS = secrets_in(DEPLOYMENT, secret_key=SECRET_KEY)

INSTALLED_APPS = [
    "django.contrib.postgres",
    "lcmsite",
    "lcmsite.dashboard",
    "conversations",
    "compaction",
    "retrieval",
    "integrity",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "pgactivity",
    "pglock",
    "django_huey",
    "django_htmx",
    "django_prometheus",
    "axes",
    "unfold",
    # Without autodiscovery: `urls` loads the admin's pages, because workers do not need them.
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "lcmsite.middleware.RequestLog",
    "django.middleware.common.CommonMiddleware",
    "lcmsite.middleware.ContentSecurity",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "lcmsite.middleware.RequestMetrics",
]
# These paths are for programs, which send a key. Every other path is a page, for people with a session.
MACHINE_PATHS = ("/api/", "/healthz", "/readyz", "/metrics", "/static/")

ROOT_URLCONF = "lcmsite.urls"
WSGI_APPLICATION = "lcmsite.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_AGE = DEPLOYMENT.session_hours * 3600
SESSION_COOKIE_HTTPONLY = True
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "lcmsite.dashboard.visit.form_refused"
# Failed logins lock out a username at an address for a while. They are counted in the database, for all processes.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_TEMPLATE = "dashboard/locked_out.html"
# `lcmsite.admin` shows the attempts instead, and lifts lockouts.
AXES_ENABLE_ADMIN = False
# The access log is not used, and would keep addresses and user agents for ever.
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "LCM admin",
    "SITE_HEADER": "LCM admin",
    "SITE_SYMBOL": "account_tree",
    "SITE_FAVICONS": [{"rel": "icon", "href": "/static/lcm/icon.svg", "type": "image/svg+xml"}],
    "SHOW_HISTORY": False,
    # The green of the dashboard, from light to dark.
    "COLORS": {
        "primary": {
            "50": "#eef7f3", "100": "#d5ebe2", "200": "#aed8c8", "300": "#7fbfa9", "400": "#4db39a", "500": "#2c8b73",
            "600": "#1f6f5c", "700": "#1a5b4c", "800": "#17493e", "900": "#143c34", "950": "#0a231e",
        }
    },
}  # fmt: skip

# Nothing from other origins, and no inline scripts or styles.
CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    },
}
# Exceptions for the admin's own pages: Alpine evaluates attributes as code, and colours are inline styles. They apply
# only under /admin/, which only staff can open, and allow nothing from other origins.
ADMIN_PATH = "/admin/"
ADMIN_CONTENT_SECURITY_POLICY: dict[str, Any] = {"script-src": ["'unsafe-eval'"], "style-src": ["'unsafe-inline'"]}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
if DEPLOYMENT.https:
    # The proxy that terminates TLS sets this header, and must remove it from incoming requests.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True


# Without LCM_DATABASE_URL, LCM runs a PostgreSQL of its own.
EMBEDDED_DATABASE = not DEPLOYMENT.database_url


def _database() -> dict[str, Any]:
    if EMBEDDED_DATABASE:
        database: dict[str, Any] = {
            "ENGINE": "lcmsite.database_backend",
            "EMBEDDED": {"data_dir": DATA_DIR, "min_free": DEPLOYMENT.min_free_bytes},
            "NAME": DATABASE,
            "USER": ROLE,
            "HOST": str(Location(DATA_DIR).socket_dir),
            "PORT": str(PORT),
        }
    else:
        database = {**dj_database_url.parse(DEPLOYMENT.database_url, engine="lcmsite.database_backend")}
    return database | {
        # The pool keeps connections, and replaces those that died.
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": database.get("OPTIONS", {})
        | {
            # A minimum of 0, so that a command with one query opens one connection. `max_waiting` is not needed,
            # because the number of threads in a process is limited.
            "pool": {
                "min_size": 0,
                "max_size": DEPLOYMENT.pool_size,
                "timeout": DEPLOYMENT.pool_timeout_seconds,
                "reconnect_timeout": DEPLOYMENT.pool_timeout_seconds,
            },
            "prepare_threshold": 5,
            "application_name": "lcm",
        },
    }


DATABASES = {"default": _database()}
# The cache that processes share, for the request counts of rate limits.
CACHES: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": [with_timeouts(DEPLOYMENT.redis_url)],
        "KEY_PREFIX": "lcm",
    }
    if DEPLOYMENT.redis_url
    else {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "lcm_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DJANGO_HUEY = queue_settings(redis_url=DEPLOYMENT.redis_url, threads=DEPLOYMENT.worker_threads)

set_up_loggers()
LOGGING = logging_settings(level=DEPLOYMENT.log_level, format=DEPLOYMENT.log_format)
# With LCM_LOG_FORMAT=json, nothing but JSON is written to standard error.
LOGS_ONLY_JSON = DEPLOYMENT.log_format == "json"
if LOGS_ONLY_JSON:
    log_what_python_prints()

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "static/"
# Serve static files directly from their packages, so that a new site needs no collectstatic.
WHITENOISE_USE_FINDERS = True

# Large files: stored by LargeFileService under their hashes, never served by path.
MEDIA_ROOT = DATA_DIR / "files"
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "conversations.files.storage.WholeFileStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

if DEPLOYMENT.s3_bucket:
    STORAGES["default"] = {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": DEPLOYMENT.s3_bucket,
            "endpoint_url": DEPLOYMENT.s3_endpoint or None,
            # Names are content hashes: an existing object of the same name has the same bytes.
            "file_overwrite": True,
            "default_acl": None,
        },
    }
    if find_spec("storages") is None:
        CONFIGURATION_PROBLEMS.append(
            Error(
                "LCM_S3_BUCKET is set, and django-storages is not installed.",
                hint='Install it with pip install "django-storages[s3]", or leave the files on disk.',
                id="lcm.E008",
            )
        )
# Anchors, and the key that signs them. LCM never creates a key file that the site administrator has configured.
ANCHOR_DIR = Path(DEPLOYMENT.anchor_dir).expanduser().absolute() if DEPLOYMENT.anchor_dir else DATA_DIR / "anchors"
ANCHOR_KEY_IS_OURS = not DEPLOYMENT.anchor_key_file
ANCHOR_KEY_FILE = (
    DATA_DIR / "anchor_key.pem" if ANCHOR_KEY_IS_OURS else Path(DEPLOYMENT.anchor_key_file).expanduser().absolute()
)

# Summarizes a plain text file when it is explored. Given by name, because `conversations` may not import `compaction`.
FILE_GIST = "compaction.summarizing.extractive.extractive_summarizer.gist"

DATA_UPLOAD_MAX_MEMORY_SIZE = DEPLOYMENT.max_request_bytes

REST_FRAMEWORK: dict[str, Any] = {
    "EXCEPTION_HANDLER": "lcmsite.api.responses.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "lcmsite.api.openapi.CompletedSchema",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "LCM",
    "DESCRIPTION": "Lossless Context Management: a memory for LLM agents that never loses a word.",
    "VERSION": "0.1.0",
    # From 3.1 on, schemas are plain JSON Schema.
    "OAS_VERSION": "3.1.0",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "POSTPROCESSING_HOOKS": ["lcmsite.api.openapi.complete_document"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}
