"""The tools of agents as an ASGI application, served beside the site."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
django.setup()

from lcmsite.mcp import http_app  # noqa: E402  (imports models)

application = http_app.application()
