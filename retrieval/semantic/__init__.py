"""Embeddings of messages, computed in the background if an embedder is set up."""
