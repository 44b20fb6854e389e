"""OpenCode: LCM's plugin, and LCM's tools over MCP.

The plugin records every message and gives the model LCM's context. It calls LCM's API itself; there are no hooks.
"""

from __future__ import annotations

from pathlib import Path

from lcmsite.hosts.agent_host import PLUGINS, FilePlan, Host, Place


class OpenCode(Host):
    name = "opencode"
    title = "OpenCode"
    program = "opencode"

    def own_folder(self, place: Place) -> Path:
        return self.folder(place, "XDG_CONFIG_HOME", ".config") / "opencode"

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import JsonMember, WholeFile

        folder = self.own_folder(place)
        # OpenCode reads either name; `.jsonc` may have comments.
        names = (folder / name for name in ("opencode.jsonc", "opencode.json"))
        config = next((path for path in names if path.exists()), folder / "opencode.json")
        server = {
            "type": "remote",
            "url": place.mcp_url,
            "headers": {"Authorization": f"Bearer {place.api_key}"},
            "enabled": True,
        }
        return [
            FilePlan(folder / "plugin" / "lcm.js", [WholeFile((PLUGINS / "opencode" / "lcm.js").read_text("utf-8"))]),
            FilePlan(config, [JsonMember(("mcp", "lcm"), server)]),
        ]


HOST = OpenCode()
