"""Parameters of annotated. Imports no NumPy: ``floorkit --help`` reads this module."""

from __future__ import annotations

import attrs

from floorkit.formats.reviews_params import ReviewParams


@attrs.frozen
class AnnotatedParams(ReviewParams):
    """``[protocols.NAME.params]`` of annotated: what all protocols on reviewed opportunities have."""
