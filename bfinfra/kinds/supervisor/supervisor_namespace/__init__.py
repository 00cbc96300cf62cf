"""A namespace on a supervisor: limits, storage, access, VM classes, content libraries. (Solution setup,
figures 5 and 6.)
"""
