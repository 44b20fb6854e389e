"""pi: an extension that records every message and gives pi's model LCM's context.

The extension calls LCM's API itself; there are no hooks.
"""

from __future__ import annotations

import json

from lcmsite.hosts.agent_host import MENTION, PLUGINS, FilePlan, Host, Place


class Pi(Host):
    name = "pi"
    title = "pi"
    program = "pi"

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import TextBlock, WholeFile

        folder = self.folder(place, "PI_CODING_AGENT_DIR", ".pi", "agent")
        plans = [
            FilePlan(folder / "extensions" / "lcm.ts", [WholeFile((PLUGINS / "pi" / "lcm.ts").read_text("utf-8"))]),
            FilePlan(folder / "extensions" / "lcm.json", [WholeFile(json.dumps({"mcp_url": place.mcp_url}) + "\n")]),
        ]
        if place.is_mentioned:
            plans.append(FilePlan(folder / "AGENTS.md", [TextBlock(MENTION, comment="<!--")]))
        return plans

    def is_here(self, place: Place) -> bool:
        return self.folder(place, "PI_CODING_AGENT_DIR", ".pi", "agent").is_dir()


HOST = Pi()
