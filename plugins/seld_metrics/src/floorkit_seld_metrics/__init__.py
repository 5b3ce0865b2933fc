"""The DCASE2026 Task 3 acoustic-map metrics of four official revisions, as a floorkit protocol."""

__version__ = "1.0.0"
