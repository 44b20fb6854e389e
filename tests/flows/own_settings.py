"""The site's settings for a process of a test, with constants that no name of the environment can set."""

import json
import os
from dataclasses import replace

from conversations.files.exploration import subprocess_parsers
from lcmsite.settings import *  # noqa: F403
from lcmsite.settings import DATABASES, DEPLOYMENT, LCM

# The parsers of files are compiled when they are run first, on a machine that is busy with other tests.
subprocess_parsers.SECONDS = 60

_OWN = json.loads(os.environ["OWN_CONSTANTS"])

# A policy takes those that are its own.
LCM = {**LCM, **_OWN}
DEPLOYMENT = replace(DEPLOYMENT, **{name: value for name, value in _OWN.items() if hasattr(DEPLOYMENT, name)})
DATABASES["default"]["OPTIONS"]["pool"] |= dict.fromkeys(
    ("timeout", "reconnect_timeout"), DEPLOYMENT.pool_timeout_seconds
)
