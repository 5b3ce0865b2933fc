"""File formats that several protocols share."""
