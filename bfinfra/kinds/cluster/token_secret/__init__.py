"""A token as Secrets in namespaces, and its rotation wherever it is used."""
