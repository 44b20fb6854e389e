"""pi: an extension that records every message and gives pi's model LCM's context.

The extension calls LCM's API itself; there are no hooks.
"""

from __future__ import annotations

import json
from pathlib import Path

from lcmsite.hosts.agent_host import PLUGINS, FilePlan, Host, Place


class Pi(Host):
    name = "pi"
    title = "pi"
    program = "pi"

    def own_folder(self, place: Place) -> Path:
        return self.folder(place, "PI_CODING_AGENT_DIR", ".pi", "agent")

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import WholeFile

        folder = self.own_folder(place) / "extensions"
        return [
            FilePlan(folder / "lcm.ts", [WholeFile((PLUGINS / "pi" / "lcm.ts").read_text("utf-8"))]),
            FilePlan(folder / "lcm.json", [WholeFile(json.dumps({"mcp_url": place.mcp_url}) + "\n")]),
        ]


HOST = Pi()
