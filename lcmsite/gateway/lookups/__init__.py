"""LCM's tools for the model of a shortened conversation, answered by the gateway."""
