"""Connect agent programs on this machine to LCM: hooks, tools and plugins."""
