"""Makes the files that a site needs in the sandbox, with the same content each time."""
