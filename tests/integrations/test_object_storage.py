"""Archives in S3, over loopback: a server that speaks its protocol stores the parts of a bundle and gives them back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from palaver import MemoryStore, Session, UserMessage
from palaver.errors import MissingFile, StoreError
from palaver.transfer.archives import archive, restore
from tests.stores import fingerprint

moto = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a client of a server in this process that has the bucket `lamps`."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
    here = {"AWS_ENDPOINT": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (keys | here).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=here["AWS_ENDPOINT"])
    client.create_bucket(Bucket="lamps")
    yield client
    server.stop()


def test_session_goes_to_s3_and_comes_back(client: Any) -> None:  # noqa: ANN401 - a class of boto3
    """A session of several parts is archived in a bucket and opened from it, as it was; an object that is gone is a missing file."""
    store = MemoryStore()
    root = Session.create(store, "lamps").root
    root.append([UserMessage.text(f"{number} " + "x" * 1000) for number in range(6_000)])
    before = fingerprint(store)
    about = archive(store, root.session_id, "s3://lamps/deep")
    assert about.bytes > 5 << 20
    Session.open(store, "lamps")
    assert fingerprint(store) == before
    archive(store, root.session_id, "s3://lamps/deep")
    client.delete_object(Bucket="lamps", Key=about.address.removeprefix("s3://lamps/"))
    with pytest.raises(MissingFile, match="archive"):
        restore(store, root.session_id)


@pytest.mark.usefixtures("client")
def test_bucket_that_is_not_there_is_said() -> None:
    """A wrong bucket is an error of the store, and nothing is removed."""
    store = MemoryStore()
    root = Session.create(store, "lamps").root
    root.append(UserMessage.text("stays"))
    before = fingerprint(store)
    with pytest.raises(StoreError, match="cannot be reached"):
        archive(store, root.session_id, "s3://wrong/deep")
    assert fingerprint(store) == before
