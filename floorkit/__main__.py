"""``python -m floorkit``."""

from floorkit.cli import main

main()
