"""Secrets that stand under fixed names in several namespaces of a cluster: what token_secret and
registry_credential share.

Their content is compared in memory while observing; states say only whether it is right, steps only where it
comes from.
"""
