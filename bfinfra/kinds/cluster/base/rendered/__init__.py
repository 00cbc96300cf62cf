"""Kubernetes objects of any type, from a rendering: each marked when it is created, compared field by field,
deleted when the rendering no longer has it.
"""
