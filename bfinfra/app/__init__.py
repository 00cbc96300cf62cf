"""The use cases of bfinfra, each in a file of its own. `wiring` gives the kinds their backends."""
