"""Making what a model sees smaller: proposed, looked at before it is done, committed in one step, and every attempt in the log."""
