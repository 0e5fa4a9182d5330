"""The tools of MCP servers, through the official client. Importing this needs the package `mcp`, the extra of the same name."""

from palaver.tools.mcp.session import McpSession, connect
from palaver.tools.servers import MCP

__all__ = ["MCP", "McpSession", "connect"]
