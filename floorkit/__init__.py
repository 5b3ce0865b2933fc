"""floorkit: a registry of benchmark protocols for floor events and spatial sound events."""

__version__ = "1.0.0"
