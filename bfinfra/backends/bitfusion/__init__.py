"""Bitfusion client tokens, which the vCenter plug-in issues as a tar."""

from bfinfra.backends.bitfusion.token import Token, digest, read_token, token_of

__all__ = ["Token", "digest", "read_token", "token_of"]
