"""Checks for later: asked for, taken up by workers, gentle with everybody else."""
