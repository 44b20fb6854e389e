"""The proxy between agents and the vendors of models: it forwards, and records."""
