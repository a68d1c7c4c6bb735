"""`python -m webmon`."""

from webmon.cli import run

run()
