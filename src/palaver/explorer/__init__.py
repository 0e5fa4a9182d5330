"""The explorer: a local page that shows what a model saw, what left its view, and why. Needs the extra `web`.

`serving` runs the server that `palaver open` starts, `door` admits requests, `server` routes them, `api` answers them, `work` does in other
processes what is slow.
"""
