"""Secrets with fixed names in several namespaces of a cluster: what token_secret and registry_credential
share. Content is compared in memory while observing. A state says only whether it is right, and a step only
where it comes from.
"""
