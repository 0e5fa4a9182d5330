"""A dialog in use: a branch that is added to, what its model sees, and what it is told."""
