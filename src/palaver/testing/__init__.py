"""Test suites of the laws, for your own stores, policies, providers and sessions."""
