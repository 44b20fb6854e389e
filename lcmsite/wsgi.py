"""The site as a WSGI application, which granian serves."""

import os

from django.core.wsgi import get_wsgi_application

from lcmsite.answering import in_one_piece

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")

application = in_one_piece(get_wsgi_application())

from lcmsite.metrics.counting import start_counting  # noqa: E402  (imports models)

start_counting()
