"""Embeddings of messages, made in the background where an embedder is set up."""
