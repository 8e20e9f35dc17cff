"""`python -m rooflang` is the command line."""

from rooflang.cli import main

main()
