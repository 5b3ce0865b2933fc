"""Contract and engine. Nothing here names a protocol."""
