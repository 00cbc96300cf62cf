"""Kubernetes as the sandbox speaks it: API servers in memory, their controllers, and the supervisor above
them.
"""
