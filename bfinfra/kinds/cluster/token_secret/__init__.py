"""A token in the Secret of a namespace, and its renewal wherever it is used."""
