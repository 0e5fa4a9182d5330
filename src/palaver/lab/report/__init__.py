"""The lab's report: the comparison as a picture, and as a page that leads from a policy to its sessions and calls."""

from palaver.lab.report.page import report
from palaver.lab.report.picture import PolicyMark, mark_of, picture, standalone

__all__ = ["PolicyMark", "mark_of", "picture", "report", "standalone"]
