"""The HTML report: one self-contained page, without network, from results and sections."""

from floorkit.reports.html.page import write_html

__all__ = ["write_html"]
