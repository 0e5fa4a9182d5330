"""The wire: what each provider accepts, requests compiled for it, and what it would refuse."""
