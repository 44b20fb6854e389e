"""The site as a WSGI application, served by `lcmsite.server`."""

import os

import django

from lcmsite.answering import Site

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")

django.setup(set_prefix=False)
application = Site()

from lcmsite.ops.metrics.counting import start_counting  # noqa: E402  (imports models)

start_counting()
