"""What several kinds of a supervisor share: notes on vSphere clusters, and all that workload clusters have in
common, whichever object describes them.
"""
