"""Hostile strings in every field, in a browser: what was said is shown, and does nothing."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from palaver import SqliteStore
from palaver.session import Dialog, searchable
from tests.explorer.running import looked_at, story

SIGNS = "\x00\x07\x1b[31m\x7f\x9b\u061c\u200e\u202e\u2066\u2069"
"""What controls a terminal, or the order of writing."""
LINES = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "http://evil.example/x.png",
    "{{7*7}} ${alert(1)} `",
    "'\"><style>*{display:none}</style>",
    "__proto__ constructor",
    "../../api/about?x=#y%00%zz",
)
HOSTILE = f"{' '.join(LINES)} {SIGNS}"
OPENED = "[...document.querySelectorAll('details')].map((one) => (one.open = true)).length"


def _stocked(store: SqliteStore) -> Dialog:
    dialog = story(store, HOSTILE, HOSTILE, small=3_500)
    dialog.put_text(f"{HOSTILE} \ud800 {'x' * 100_000}")
    store.index(searchable)
    return dialog


def test_hostile_strings_are_shown_and_do_nothing(tmp_path: Path) -> None:
    """No dialog, no request to anywhere else, no report of the policy for content, no exception; controls are shown as numbers."""
    with looked_at(tmp_path, _stocked) as (_, tab, dialog):
        session, seen = f"#/s/{dialog.session_id}", ""
        asked = f"fetch('/api/sessions/{dialog.session_id}').then((answer) => answer.json())"
        fork = tab.ask(f"{asked}.then((found) => found.dialogs.at(-1).dialog)")
        screens = ["/cost", "/call/1?wire=1", "/compare?a=1&b=2", f"/compare?one={dialog.dialog_id}&other={fork}"]
        for route in (
            "#/",
            "#/sessions",
            "#/?q=script",
            "#/costs?by=session",
            "#/costs?by=folder",
            f"#/costs?folder={quote(HOSTILE, safe='')}",
            session,
            *(session + each for each in screens),
            "#/?find=script",
        ):
            tab.go(route)
            tab.ask(OPENED)
            seen += tab.settle()
        for route, box in (
            (f"{session}/log", "#entries"),
            (f"{session}/call/2", "#blocks"),
            (f"{session}/compare?a=1&b=2", "#differences"),
        ):
            tab.go(route)
            tab.tab_to(box)
            tab.press("Home")
            for _ in range(tab.ask(f"document.querySelectorAll('{box} .row').length")):
                tab.settle()
                tab.ask(OPENED)
                seen += tab.text()
                tab.press("ArrowDown")
        assert tab.told == []
        for route in (
            "#/s/W",
            "#/s/W/call/W",
            f"{session}?d=W",
            f"{session}?e=W",
            f"{session}/compare?a=W&b=W",
            "#/?find=W",
            "#/?q=W",
            "#/costs?by=W",
        ):
            for each in (*LINES, HOSTILE):
                seen += tab.go(route.replace("W", quote(each, safe="")))
        assert not [each for each in tab.told if not re.match(r"network: .* status of 40[04] ", each)]
        origin = tab.ask("location.origin")
        assert {each for each in tab.asked if not each.startswith(f"{origin}/")} == set()
        assert not set(seen) & set(SIGNS) - {"[", "3", "1", "m"}
        assert all(f"[U+{ord(each):04X}]" in seen for each in SIGNS if not each.isprintable())
        assert all(each in seen for each in LINES)
        tab.told.clear()
        tab.ask("document.body.append(Object.assign(new Image(), { src: 'http://evil.example/y.png' }))")
        tab.settle()
        assert "Content Security Policy" in str(tab.told), "what the policy forbids is heard of"
