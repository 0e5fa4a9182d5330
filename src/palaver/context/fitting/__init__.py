"""Lists of dicts in and out: what `fit` is made of."""
