"""What runs in a cluster: each controller looks at an object and does the next step; none remembers what the
store doesn't say.
"""
