"""Kinds whose objects are in a supervisor."""
