"""The tables: what fields the requests of the four providers have, after their published types."""
