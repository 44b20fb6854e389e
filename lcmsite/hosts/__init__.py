"""Connect agent programs of this machine: hooks, tools and plugins."""
