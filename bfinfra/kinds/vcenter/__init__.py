"""Kinds whose objects are in vCenter."""
