"""An MCP server of our own, for what the one of others never does: pages, odd names, errors of its own, a session that ends."""

import json
import sys
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
        sys.exit(0)
    if name == "fail":
        return {"error": {"code": -32000, "message": "no such ticket"}}
    if name == "odd":
        picture = {"type": "image", "data": "bm8gcGljdHVyZQ==", "mimeType": "image/x-unknown"}
        return {"result": {"content": [picture], "structuredContent": {"n": 1}, "isError": True}}
    return {"result": {"content": [{"type": "text", "text": f"{name} {json.dumps(arguments)}"}]}}


def main() -> None:
    """Answer requests until there are no more."""
    if sys.argv[1:] == ["endless"]:
        PAGES.update({None: (["x"], "2"), "2": ([], "2")})
    for line in sys.stdin:
        request = json.loads(line)
        parameters = request.get("params") or {}
        if "id" not in request:
            continue
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
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
