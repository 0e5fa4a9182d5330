"""Branches: the tree they make, the paths that lead through it, where two of them part, and going back."""
