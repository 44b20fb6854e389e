"""The site as a WSGI application, served by `lcmsite.server`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")

application = get_wsgi_application()
