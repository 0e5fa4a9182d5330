"""An MCP server of our own, for what the one of others never does: pages, odd names, errors of its own, a session that ends."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGES: dict[str | None, tuple[list[str], str | None]] = {
    None: (["first", "a b"], "2"),
    "2": (["a/b", "a:b"], "3"),
    "3": (["a_b", "echo", "fail", "leave", "odd"], None),
}


WELCOME = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}


def _tools(cursor: str | None) -> dict[str, Any]:
    names, following = PAGES[cursor]
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return {"tools": tools, **({"nextCursor": following} if following else {})}


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "leave":
        os._exit(0)
    if name == "fail":
        return {"error": {"code": -32000, "message": "no such ticket"}}
    if name == "odd":
        picture = {"type": "image", "data": "bm8gcGljdHVyZQ==", "mimeType": "image/x-unknown"}
        return {"result": {"content": [picture], "structuredContent": {"n": 1}, "isError": True}}
    return {"result": {"content": [{"type": "text", "text": f"{name} {json.dumps(arguments)}"}]}}


def _answered(request: dict[str, Any]) -> str:
    """Return the line that answers a request; empty for a notification."""
    parameters = request.get("params") or {}
    if "id" not in request:
        return ""
    answer: dict[str, Any]
    match request["method"]:
        case "initialize":
            answer = {"result": WELCOME}
        case "tools/list":
            answer = {"result": _tools(parameters.get("cursor"))}
        case "tools/call":
            answer = _call(parameters["name"], parameters.get("arguments") or {})
        case _:
            answer = {"error": {"code": -32601, "message": "unknown method"}}
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}) + "\n"


class _Posted(BaseHTTPRequestHandler):
    """The same over HTTP: every answer is one JSON."""

    def do_POST(self) -> None:
        """Answer a request."""
        body = _answered(json.loads(self.rfile.read(int(self.headers["Content-Length"])))).encode()
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    allow_reuse_port = True  # who started it keeps the port for the next one


def main() -> None:
    """Answer requests until there are no more."""
    if sys.argv[1:] == ["endless"]:
        PAGES.update({None: (["x"], "2"), "2": ([], "2")})
    elif sys.argv[1:]:
        served = _Server(("127.0.0.1", int(sys.argv[1])), _Posted)
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        served.serve_forever()
    for line in sys.stdin:
        sys.stdout.write(_answered(json.loads(line)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
