"""Kinds that are only read: bfinfra creates and changes nothing for them."""
