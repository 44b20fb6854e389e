"""Store the messages of requests and answers of the gateway, each once."""
