"""The plugin_name protocol: event onsets found within a tolerance."""
