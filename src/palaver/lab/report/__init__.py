"""The report of a run: one HTML file that needs nothing beside it and no network, and its charts as pictures."""

from palaver.lab.report.report import Report, write_pictures, write_report

__all__ = ["Report", "write_pictures", "write_report"]
