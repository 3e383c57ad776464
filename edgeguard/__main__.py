"""``python -m edgeguard`` is the command ``edgeguard``."""

import sys

from edgeguard.cli.main import main

sys.exit(main())
