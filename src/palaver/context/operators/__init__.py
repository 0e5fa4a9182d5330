"""Operators: the small pure functions that policies are made of. Each says whether its handle brings back all that it takes out."""
