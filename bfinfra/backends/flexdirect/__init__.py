"""Parses FlexDirect's own texts: health reports and server lists. Pure."""
