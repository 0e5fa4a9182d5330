"""Sessions outside their store: as JSON, as a log that follows it, as a copy in another one; and the way back in."""
