"""`python -m bfinfra`."""

import sys

from bfinfra.cli import main

sys.exit(main())
