"""Code that several kinds in vCenter share."""
