"""Virtual machines of any kind: their places, hardware, notes and steps."""
