"""NVIDIA's GPU operator, from its chart or a rendering of it, with its settings as fields."""
