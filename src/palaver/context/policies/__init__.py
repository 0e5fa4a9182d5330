"""The policies that come with palaver."""
