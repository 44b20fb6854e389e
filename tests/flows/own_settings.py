"""The site's settings for a process of a test, with a policy that no name of the environment can set."""

import json
import os

from lcmsite.settings import *  # noqa: F403
from lcmsite.settings import LCM

LCM = {**LCM, **json.loads(os.environ["OWN_POLICY"])}
