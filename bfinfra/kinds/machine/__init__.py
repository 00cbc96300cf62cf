"""Kinds whose objects are on Linux machines only."""
