"""Shipped suites: the laws of stores, policies, profiles and importers, to run over one's own."""
