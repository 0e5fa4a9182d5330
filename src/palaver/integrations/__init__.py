"""Adapters that make a store of palaver the store of another framework. Each is a separate module that imports its framework."""
