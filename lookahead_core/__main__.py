"""The command `python -m lookahead_core`; see the package `command`."""

import sys

from lookahead_core.command.main import main

if __name__ == "__main__":
    sys.exit(main())
