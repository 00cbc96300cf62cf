"""Code that several kinds of a supervisor share: notes on vSphere clusters, and everything that is the same
for tanzu_cluster and vks_cluster.
"""
