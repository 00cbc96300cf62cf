"""What several kinds in vCenter share."""
