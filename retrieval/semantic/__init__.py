"""Vectors of what messages say, made in the background where an embedder is set up."""
