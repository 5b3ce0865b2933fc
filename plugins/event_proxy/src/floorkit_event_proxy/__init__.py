"""event_proxy: the activity-derived event proxy for reviewed opportunities, as a floorkit plugin."""

__version__ = "1.0.0"
