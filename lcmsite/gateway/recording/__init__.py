"""Store what passes through the gateway as messages, once each."""
