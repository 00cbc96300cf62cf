"""Kinds whose objects are on Linux machines and nowhere else."""
