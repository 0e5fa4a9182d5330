"""Adapters: stores of palaver behind the protocols of other frameworks, each in a module of its own that imports its framework."""
