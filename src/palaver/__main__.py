"""`python -m palaver` is the command line."""

import sys

from palaver.cli import main

if __name__ == "__main__":
    sys.exit(main())
