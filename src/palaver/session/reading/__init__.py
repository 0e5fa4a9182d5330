"""Reading a log where it lies: its messages, the marks on them, originals by their handles, what a search is made of, and how much is there."""
