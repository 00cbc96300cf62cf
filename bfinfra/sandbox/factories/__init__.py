"""Files that a world's site needs, made the same way each time."""
