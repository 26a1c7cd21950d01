"""The bucket that all of a Ray cluster's pods keep checkpoints in, by the data connection in their environment."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs

DEFAULT = "distributed-demo"
"""As the notebooks name it."""


def storage(run: str) -> dict[str, Any]:
    """Return where Ray keeps a run, as a RunConfig takes it; make the bucket if it is not there.

    The keys are in no address, which Ray would print. Raises KeyError where a variable of the connection is missing.
    """
    endpoint, name = urlsplit(os.environ["AWS_S3_ENDPOINT"]), os.environ.get("AWS_S3_BUCKET") or DEFAULT
    store = fs.S3FileSystem(
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        region=os.environ.get("AWS_DEFAULT_REGION") or "us-east-1",
        scheme=endpoint.scheme,
        endpoint_override=endpoint.netloc,
        allow_bucket_creation=True,
    )
    if store.get_file_info(name).type is fs.FileType.NotFound:
        store.create_dir(name)
    return {"storage_path": name, "storage_filesystem": store, "name": run}
