"""Archives that come from outside, read as streams within bounds: tar, zip, gzip, bzip2, xz. Nothing else
unpacks.
"""
