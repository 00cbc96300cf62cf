"""`python -m bfinfra`."""

import sys

from bfinfra.cli import program

sys.exit(program())
