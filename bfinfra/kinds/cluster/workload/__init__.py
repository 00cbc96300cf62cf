"""A Pod or Job that uses remote GPUs, with its claims, from a manifest file. (Pod specification, figures 12
and 13.)
"""
