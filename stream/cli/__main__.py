"""`python -m stream.cli` is `graftd`."""

from stream.cli import main

main()
