"""Benchmarks: ratios, in one run on one machine. They print a table and are no tests."""
