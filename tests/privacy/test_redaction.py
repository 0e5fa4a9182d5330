"""Redaction: what is found, what is never touched, how long it takes, and every way into a store and out of it."""

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.errors import NotFound
from palaver.log import ErrorEntry, Inbox, Invocation, MessageEntry, decode_entry, draft
from palaver.log.redaction import (
    PATTERNS,
    PatternRedactor,
    Redacted,
    Redactor,
    StreamRedactor,
    redact_body,
    redact_json,
)
from palaver.messages import (
    AssistantMessage,
    ImageContent,
    Media,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.session import Session
from palaver.store import MemoryStore, Store
from palaver.store.redacting import redacted_entry, redacting
from palaver.testing.strategies import messages
from palaver.transcripts import EXPORTS, Importer, export
from tests.privacy.secrets_made import SECRETS

REDACTOR = PatternRedactor()
KEY = SECRETS["github-token"]

PIECES = st.one_of(
    st.sampled_from([*SECRETS.values(), *(secret[:12] for secret in SECRETS.values())]),
    st.sampled_from(
        [
            "password = ",
            '"api_key": "',
            "Authorization: Bearer ",
            "http://u:",
            "@host",
            "-----BEGIN PRIVATE KEY-----",
            "-----END ",
            "\n",
            "\\n",
            '"',
        ]
    ),
    st.text(string.printable, max_size=12),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.parametrize("kind", sorted(SECRETS))
@pytest.mark.parametrize("around", ["{}", "x {} y", 'export K="{}"', "k={}\n", '{{"k": "{}"}}', "({})", "`{}`,"])
def test_a_secret_of_each_kind_is_found(kind: str, around: str) -> None:
    """Wherever a key or token of a known form stands, it is taken out whole, and what stands around it stays."""
    text = around.format(SECRETS[kind])
    redacted = REDACTOR.redact(text)
    assert SECRETS[kind] not in redacted.text
    assert [one.kind for one in redacted.found][:1] in ([kind], ["assigned-secret"])
    assert redacted.text.startswith(text[: around.index("{}") if "{{" not in around else 1])


def test_every_pattern_is_tried() -> None:
    """Each kind of the default patterns has a secret in this file that it finds."""
    others = {
        "slack-webhook": "https://hooks.slack.com/services/T0000/B0000/" + "a1" * 12,
        "azure-key": "AccountKey=" + "aB3/" * 20 + "==",
        "authorization": "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "bearer-token": "then bearer abcDEF123456.ghiJKL7890-xyz",
        "url-password": "postgres://ann:correct-horse@db.example/x",
        "assigned-secret": "db_password = 'tr0ub4dor&3'",
    }
    found = {one.kind for text in (*SECRETS.values(), *others.values()) for one in REDACTOR.redact(text).found}
    assert found == {pattern.kind for pattern in PATTERNS}
    for kind, text in others.items():
        assert [one.kind for one in REDACTOR.redact(text).found] == [kind], text


@pytest.mark.parametrize(
    "text",
    [
        "use sk-learn-is-a-library-name", "the secret: value", "token count: 12345", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "password = os.environ['DB_PASSWORD']", "api_key=${API_KEY}", "password: ********", "6d4d1c7e-3f0a-4f7e-9d6e-0b8f7c2a1e55",
        "commit 2d59d6c privacy", "https://example.com/a:b@c", "keyboard = 12345678", "Bearer of bad news", "api_key: <your key here>",
        "-----BEGIN PRIVATE KEY----- is how such a file begins", "tokens=100000", "secret_santa: 2024",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    """Digests, ids, placeholders, variables and prose are not taken for secrets."""
    assert REDACTOR.redact(text) == Redacted(text, ())


@given(text=TEXTS)
def test_redaction_is_idempotent(text: str) -> None:
    """What was redacted holds nothing more to redact, with a key and without; and it is pure."""
    for redactor in (REDACTOR, PatternRedactor(key=b"k")):
        once = redactor.redact(text)
        assert redactor.redact(once.text) == Redacted(once.text, ())
        assert redactor.redact(text) == once


@given(text=TEXTS, data=st.data())
def test_a_stream_is_redacted_wherever_it_is_cut(text: str, data: st.DataObject) -> None:
    """Pieces of a text, however it is cut, give what the whole text gives: no secret slips through between two."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    stream = StreamRedactor(REDACTOR)
    given_out = [stream.feed(text[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join([*given_out, stream.close()]) == REDACTOR.redact(text).text


_SEEDS = ["sk-", "eyJ-", "eyJa.", "eyJaaaaaaaaaaa.eyJ", "password=", "a", "http://a:", "://a:b", "xoxb-", "AKIA", "7:A", "SG.a", "bearer ", "\\n",
          "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n", "A: b\n", "secret-", "key", "\"'", "token ="]  # fmt: skip


@settings(max_examples=20)
@given(seeds=st.lists(st.sampled_from(_SEEDS), min_size=1, max_size=3))
def test_no_text_takes_long(seeds: list[str]) -> None:
    """Texts made to trip patterns up are done with: where time grew with the square of their length, this would not end within the hour."""
    text = ("".join(seeds) * 200_000)[:200_000]
    assert REDACTOR.redact(text).text or not text


def test_the_same_secret_has_the_same_mark() -> None:
    """With a key, placeholders of one secret are the same and of two differ; with another key, or none, nothing tells."""
    one, other = PatternRedactor(key=b"one"), PatternRedactor(key=b"other")
    first, second = one.redact(f"a {KEY}"), one.redact(f"b {KEY} {SECRETS['npm-token']}")
    assert first.found[0] in second.found
    assert len({found.mark for found in second.found}) == 2
    assert other.redact(KEY).found[0].mark != first.found[0].mark
    assert REDACTOR.redact(KEY).text == "[redacted:github-token]"


# --- entries ----------------------------------------------------------------------------------------------------------------------


def _everywhere() -> list[Message]:
    args = {"env": {"password": "hunter2", "note": KEY}, "list": [KEY, 1, None, True], KEY: "a key of a field"}
    return [
        UserMessage(content=f"my key {KEY}", metadata={"raw": KEY}),
        AssistantMessage(
            contents=(
                ThinkingContent(content=f"the key is {KEY}", signature="c2ln", provider="anthropic"),
                ThinkingContent(content="no secret here", signature=KEY, artefact={"encrypted_content": KEY}),
                ThinkingContent(redacted=KEY, provider="anthropic"),
                ToolCallContent(id=KEY, name="run", args=args),
                ToolCallContent(id="c2", name="run", args={}, raw_args=json.dumps({"token": "abc", "x": KEY})),
                ToolCallContent(id="c3", name="run", args={}, raw_args=f"not json {KEY}"),
            ),
            usage={"input_tokens": 3, "trace": KEY},
            error=f"failed with {KEY}",
            response_id="r",
        ),
        ToolMessage(
            contents=(
                ToolResultContent(
                    id=KEY,
                    content=(
                        TextContent(content=f"AWS: {SECRETS['aws-access-key']}"),
                        ImageContent(images=(Media(url=f"https://u:{'p' * 12}@host/x.png"),)),
                    ),
                    metadata={"authorization": "abcdefgh"},
                ),
            )
        ),
    ]


def _signed(message: Message) -> list[Any]:
    return [block for block in message.contents if isinstance(block, ThinkingContent)]


def test_all_of_an_entry_is_redacted_and_nothing_sealed_is() -> None:
    """Texts, arguments, raw arguments, keys, metadata, usage, errors and addresses lose their secrets; ids, signatures and sealed data do not change."""
    entries = [MessageEntry(message=message) for message in _everywhere()]
    made = [redacted_entry(entry, REDACTOR) for entry in entries]
    said, thought, result = (entry.message for entry in made)
    assert KEY not in draft(made[0])[0].body.decode()
    assert said.metadata["raw"] == "[redacted:github-token]"
    spoilt, signed, sealed = _signed(thought)
    assert (spoilt.content, spoilt.signature) == ("the key is [redacted:github-token]", "")
    assert [signed, sealed] == _signed(entries[1].message)[1:]
    first, second, third = thought.tool_calls()
    assert first.id == KEY
    assert dict(first.args["env"]) == {"password": "[redacted:named-secret]", "note": "[redacted:github-token]"}
    assert list(first.args["list"]) == ["[redacted:github-token]", 1, None, True]
    assert "[redacted:github-token]" in first.args
    assert json.loads(second.raw_args or "") == {"token": "[redacted:named-secret]", "x": "[redacted:github-token]"}
    assert third.raw_args == "not json [redacted:github-token]"
    assert (thought.usage["input_tokens"], thought.usage["trace"]) == (3, "[redacted:github-token]")
    assert thought.error == "failed with [redacted:github-token]"
    body = draft(made[2])[0].body.decode()
    assert "pppp" not in body
    assert "abcdefgh" not in body
    assert result.tool_results()[0].id == KEY
    for was, entry in zip(entries, made, strict=True):
        assert draft(was)[0]._replace(body=b"") == draft(entry)[0]._replace(body=b"")
        assert entry.redacted
        assert all(one.place.startswith("message.") and one.count for one in entry.redacted)
        assert redacted_entry(entry, REDACTOR) is entry
        assert decode_entry(draft(entry)[0].body) == entry


@given(message=messages())
def test_redaction_and_reading_commute(message: Message) -> None:
    """`redact(decode(encode(x)))` is `redact(x)`; bytes of entries stay canonical, and what has no secret is not touched at all."""
    entry = MessageEntry(message=message)
    body = draft(entry)[0].body
    made = redact_body(body, REDACTOR)
    assert redact_body(made, REDACTOR) == made
    again = decode_entry(made)
    assert draft(again)[0].body == made
    if not again.redacted:
        assert made == body


@given(
    value=st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), TEXTS),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "token", "x"]), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_json_stays_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Structured values keep their shape, their numbers and their order; raw arguments stay readable JSON with the same shape."""
    made = redact_json(value, REDACTOR)
    assert _shape(made) == _shape(value)
    assert redact_json(made, REDACTOR) == made
    call = AssistantMessage(contents=(ToolCallContent(id="c", name="n", args={}, raw_args=json.dumps({"v": value})),))
    entry = redacted_entry(MessageEntry(message=call), REDACTOR)
    raw = entry.message.tool_calls()[0].raw_args
    assert raw is not None
    assert _shape(json.loads(raw)) == _shape({"v": value})


def _shape(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return {name: _shape(one) for name, one in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list | tuple) else value


# --- ways in ----------------------------------------------------------------------------------------------------------------------


def holds(store: Store, secret: str) -> bool:
    """Tell whether anything in a store spells a secret."""
    for trashed in (False, True):
        for record in store.sessions(trashed=trashed):
            if secret in repr(record):
                return True
            for node in store.nodes(record.session_id):
                if secret in repr(node) or any(secret.encode() in body for _, body in store.bodies(node.dialog_id)):
                    return True
    return False


def test_nothing_is_durable_before_it_is_redacted() -> None:
    """A session that redacts writes no secret, whichever call writes; what is given back is what was written; readers see no more."""
    store = MemoryStore()
    session = Session.create(store, f"name {KEY}", workdir=f"/w/{KEY}", metadata={"password": "hunter2"}, redact=True)
    root = session.root
    given_back = root.put_text(f"use {KEY}")
    assert given_back.content == "use [redacted:github-token]"
    root.append(_everywhere()[1:2])
    root.record(ErrorEntry(error=KEY, data={"x": [KEY]}))
    root.annotate(Inbox(message=UserMessage(content=KEY)))
    root.annotate(Invocation(model="m", manifest={"saw": KEY}))
    root.label(root.messages.handle(0), f"label {KEY}")
    root.fork().put_text(KEY)
    session.rename(f"again {KEY}")
    session.new_dialog("other", {"task": KEY})
    thinking = [block for block in root.messages[1].contents if isinstance(block, ThinkingContent)]
    kept = [thinking[1].signature, thinking[2].redacted]
    assert kept == [KEY, KEY], "what providers sealed is theirs"
    call = root.messages[1].tool_calls()[0].id
    assert call == KEY, "an id is an id"
    for node in store.nodes(session.session_id):
        for _, body in store.bodies(node.dialog_id):
            entry = json.loads(body)
            if entry["kind"] != "message" or entry["message"]["role"] != "assistant":
                assert KEY.encode() not in body
    assert KEY not in repr(session.record)
    assert "hunter2" not in repr(session.record)
    assert (
        Session.open(session.session_id, store, redact=REDACTOR).root.put_text(KEY).content == "[redacted:github-token]"
    )
    assert session.search("again") == ()


def test_a_redactor_of_ones_own_is_used() -> None:
    """Whatever has `redact(text, name)` is a redactor; the default one is not asked then."""

    class Shouting:
        def redact(self, text: str, name: str = "") -> Redacted:  # noqa: ARG002 - the protocol's
            return Redacted(text.replace("ann", "[person]"), ())

    shouting: Redactor = Shouting()
    session = Session.create(redact=shouting)
    assert session.root.put_text(f"ann has {KEY}").content == f"ann has {KEY}", "what is not told of was not taken out"
    assert isinstance(shouting, Redactor)


@pytest.mark.parametrize("form", sorted(EXPORTS))
def test_an_export_can_be_redacted(form: str, write: Callable[[], Session]) -> None:
    """In every form an export without secrets says all the rest; the store keeps them."""
    session = write()
    plain = b"".join(export(session.store, session.session_id, form).pieces)
    redacted = b"".join(export(session.store, session.session_id, form, redact=True).pieces)
    assert KEY.encode() in plain or form == "bundle"
    assert KEY.encode() not in redacted
    assert holds(session.store, KEY)
    with pytest.raises(NotFound):
        export(session.store, session.session_id, "nothing", redact=True)


@pytest.fixture
def write() -> Callable[[], Session]:
    """Give what writes a session with a secret in it."""

    def written() -> Session:
        session = Session.create(MemoryStore(), "plain")
        session.root.put_text(f"use {KEY}")
        session.root.append(AssistantMessage(contents=(ToolCallContent(id="c1", name="f", args={"k": KEY}),)))
        session.root.append(ToolMessage(contents=(ToolResultContent(id="c1", content=f"ok {KEY}"),)))
        return session

    return written


def test_an_import_can_be_redacted(tmp_path: Path) -> None:
    """Importing with a redactor writes no secret and keeps no file; doing it again adds nothing."""
    file = tmp_path / "list.json"
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "f", "arguments": json.dumps({"api_key": "s3cr3t", "x": KEY})},
    }
    file.write_text(
        json.dumps(
            [
                {"role": "user", "content": f"key {KEY}"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": f"found {KEY}"},
            ]
        )
    )
    store = MemoryStore()
    (done,) = Importer(store, redactor=REDACTOR).import_path(file)
    assert "redacted" in {loss.code for loss in done.losses}
    assert not holds(store, KEY)
    assert not holds(store, "s3cr3t")
    assert [source.raw for source in store.sources(done.session_id)] == [None]
    (again,) = Importer(store, redactor=REDACTOR).import_path(file)
    assert (again.outcome, again.entries) == ("unchanged", 0)


def test_a_store_behind_a_redactor_is_the_same_store() -> None:
    """It can do what the store can, and a second redactor of the same kind is not put before it."""
    store = MemoryStore()
    before = redacting(store, REDACTOR)
    assert redacting(before, REDACTOR) is before
    assert (before.url, before.capabilities) == (store.url, store.capabilities)
    session = Session.create(before)
    session.root.put_text("hi")
    receipt = session.erase()
    assert receipt.complete
