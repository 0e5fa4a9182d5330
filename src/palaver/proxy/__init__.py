"""The proxy: forwards the requests of any program to its vendor, unchanged, and records each as a call of a session."""
