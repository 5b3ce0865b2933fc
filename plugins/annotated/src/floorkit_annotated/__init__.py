"""annotated: human-annotated fixed-horizon floor events, as a floorkit plugin."""

__version__ = "1.0.0"
