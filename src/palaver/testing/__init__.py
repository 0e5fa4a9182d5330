"""Shipped suites: the laws of stores, policies, providers and sessions, to run over one's own."""
