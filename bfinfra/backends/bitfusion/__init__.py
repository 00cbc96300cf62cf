"""Bitfusion client tokens: what the vCenter plug-in hands out as a tar."""

from bfinfra.backends.bitfusion.token import Token, digest, read_token, token_of

__all__ = ["Token", "digest", "read_token", "token_of"]
