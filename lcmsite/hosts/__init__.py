"""Connect agent programs of this machine: their hooks, their MCP entries, their plugins."""
