"""Kinds that are only read: there is nothing of them but what a file says."""
