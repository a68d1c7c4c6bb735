"""`python -m webmon`."""

import sys

from webmon.cli import main

sys.exit(main())
