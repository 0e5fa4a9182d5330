"""Small recorded sessions, written as a coding agent writes them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

BEGIN = 1_770_000_000.0


def coding(
    path: Path, *, rounds: int = 30, size: int = 1_500, pause: int = 0, dated: bool = True, summary: str = ""
) -> Path:
    """Write a session: the user asks, the agent reads a file and edits what it read, round after round.

    Each edit refers to a number that stands in the file read just before, and every fifth one to a number read four rounds before. Every
    seventh call fails.

    Args:
        path: The file.
        rounds: How many files are read.
        size: Characters of a file.
        pause: The round before which nothing happens for an hour; 0 for none.
        dated: Whether records have times and usage.
        summary: What the agent wrote when it compacted the first half; empty where it did not.
    """
    lines: list[dict[str, Any]] = []
    at = BEGIN

    def add(kind: str, message: dict[str, Any]) -> None:
        number = len(lines)
        lines.append(
            {
                "type": kind,
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number else None,
                "sessionId": path.stem,
                "timestamp": datetime.fromtimestamp(at if dated else 0, UTC).isoformat().replace("+00:00", "Z"),
                "cwd": "/repo",
                "version": "2.0.0",
                "message": message,
            }
        )
        if not dated:
            del lines[-1]["timestamp"]

    def answer(number: int, name: str, call: str, arguments: dict[str, Any]) -> None:
        use = {"type": "tool_use", "id": call, "name": name, "input": arguments}
        usage = {"usage": {"input_tokens": 10, "output_tokens": 40}} if dated else {}
        message = {"id": f"msg_{number}", "role": "assistant", "model": "claude-sonnet-4-5", "content": [use]}
        add("assistant", message | usage)

    def result(call: str, text: str, *, error: bool = False) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}
        add("user", {"role": "user", "content": [block]})

    add("user", {"role": "user", "content": "Repair the numbers. You must never touch the tests directory."})
    for number in range(rounds):
        if summary and number == rounds // 2:
            add("user", {"role": "user", "content": summary})
            lines[-1]["isCompactSummary"] = True
        at += 3_600.0 if pause and number == pause else 20.0
        answer(2 * number, "Read", f"r{number}", {"file_path": f"src/part_{number}.py"})
        body = f"value_{number} = {90_000 + number}\n" + "x = 1  # nothing of note\n" * (size // 25)
        result(f"r{number}", body)
        at += 20.0
        then = number - 4 if number % 5 == 4 else number
        change = {"file_path": f"src/part_{number}.py", "old_string": str(90_000 + then), "new_string": str(then)}
        answer(2 * number + 1, "Edit", f"e{number}", change)
        failed = number % 7 == 6
        result(f"e{number}", f"Error: old_string {then} was not found" if failed else "done", error=failed)
    add("user", {"role": "user", "content": "Thank you."})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def asking(path: Path, names: dict[int, str]) -> Path:
    """Write a session: twelve results are read, each with a number and a word of its own, then one of the numbers is used.

    Args:
        path: The file.
        names: What the tool that uses a number is called; a result with the same word is found by a search for it.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all of it, then use what you found."}]

    def did(call: str, name: str, arguments: dict[str, Any], text: str) -> None:
        made = {"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": call, "content": text})

    for number in range(12):
        did(f"r{number}", "read", {}, f"{80_000 + number} word{chr(97 + number)} " + "and so on " * 300)
    for number, name in names.items():
        did(f"u{number}", name, {"value": str(80_000 + number)}, "used")
    path.write_text(json.dumps(messages))
    return path
