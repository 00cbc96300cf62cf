"""A Linux machine that is there already, by SSH: a place for clients and servers of remote GPUs."""
