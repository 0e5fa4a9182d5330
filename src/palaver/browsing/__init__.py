"""Browsing: sessions, entries, calls, views, differences and hits as plain data, which the command line prints and the explorer serves.

A row is a dictionary of JSON values: `--json` prints it as it is, tables and pages render it. Only `actions` writes to a log.
"""
