"""Run the workbench's demos at toy size on a local Ray, with a local object store.

Like on a cluster, each demo is submitted to the head's dashboard, as KubeRay does. Fails if a demo fails, does not
learn, or leaves no checkpoint in the bucket. Runs in an environment with the packages of the group `training` in
pyproject.toml. Usage: python -m lab.soak.demos STORE, where STORE is moto's server.
"""

import contextlib
import json
import os
import shlex
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ray
from pyarrow import fs
from ray.job_submission import JobSubmissionClient
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from components.workbench.demos.bucket import DEFAULT
from lab.dashboards.ports import free_port
from lab.soak.disturbed import json_lines

ROOT = Path(__file__).parents[2]
PROGRAMS = {"jobtest": "mnist", "interactivetest": "interactive", "tunecluster": "tune"}
"""Programs of the demos, from `components.workbench.ray_job`, which needs packages that are not installed here."""
KEYS = {"AWS_ACCESS_KEY_ID": "workbench", "AWS_SECRET_ACCESS_KEY": "made-up"}
NO_AGENT, AGENT_SECONDS = "No available agent", 120.0
"""Ray's dashboard returns this error (dashboard/modules/job/job_head.py) until the head's agent runs. Largest wait for
it on a busy machine.
"""


@contextlib.contextmanager
def object_store(program: str) -> Iterator[str]:
    """Run moto's server; yield its address."""
    port = free_port()
    store = subprocess.Popen(
        [program, "--host", "127.0.0.1", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        store.kill()
        store.wait()


def write_pictures(folder: Path) -> None:
    """Write 64 pictures of ten classes, each bright at its own height, where torchvision looks for them."""
    raw = folder / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        kinds = bytes(number % 10 for number in range(64))
        pixels = b"".join(bytes(56 * kind) + b"\xff" * 56 + bytes(56 * (13 - kind)) for kind in kinds)
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, 64, 28, 28) + pixels)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, 64) + kinds)


def write_reviews(folder: Path) -> None:
    """Write reviews of one word each, and a model of a few thousand weights with its tokenizer."""
    data, model = folder / "reviews", folder / "model"
    data.mkdir(parents=True)
    model.mkdir()
    entries = [{"text": ("bad", "good")[number % 2], "label": number % 2} for number in range(32)]
    for part in ("train", "test"):
        (data / f"{part}.jsonl").write_text("\n".join(json.dumps(entry) for entry in entries))
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bad", "good")
    (model / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab_file=str(model / "vocab.txt"), model_max_length=16).save_pretrained(model)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    BertForSequenceClassification(config).save_pretrained(model)


def write_table(path: Path) -> None:
    """Write a table whose column `target` depends on another column."""
    rows = [(number % 20, number % 7) for number in range(200)]
    lines = [f"{first},{second},{int(first >= 10)}" for first, second in rows]
    path.write_text("\n".join(["first,second,target", *lines]))


class Head:
    """The head of a one-node Ray cluster, used through its dashboard."""

    def __init__(self, address: str, environment: Mapping[str, str]) -> None:
        self.client, self.environment = JobSubmissionClient(address), dict(environment)

    def run(self, demo: str, *arguments: str) -> list[Mapping[str, Any]]:
        """Run a demo's program to its end; return the lines of JSON that it prints."""
        command = shlex.join([sys.executable, "-m", f"components.workbench.demos.{PROGRAMS[demo]}", *arguments])
        job = self._submitted(command)
        while not (status := self.client.get_job_status(job)).is_terminal():
            time.sleep(1)
        log = self.client.get_job_logs(job)
        assert status.value == "SUCCEEDED", log
        return list(json_lines(log.splitlines()))

    def _submitted(self, command: str) -> str:
        """Submit a job as soon as an agent can run it. The agent starts after the dashboard."""
        until = time.monotonic() + AGENT_SECONDS
        while True:
            try:
                return str(self.client.submit_job(entrypoint=command, runtime_env={"env_vars": self.environment}))
            except RuntimeError as error:
                if NO_AGENT not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(1)


@contextlib.contextmanager
def cluster(environment: Mapping[str, str]) -> Iterator[Head]:
    """Run Ray with enough CPUs for the demos' workers; yield the head once the dashboard responds."""
    os.environ |= environment
    context = ray.init(num_cpus=8, include_dashboard=True, dashboard_port=free_port(), log_to_driver=False)
    try:
        address = f"http://{context.dashboard_url}"
        with urllib.request.urlopen(f"{address}/api/version", timeout=60) as answer:
            version = json.load(answer)["ray_version"]
        print(f"the dashboard of Ray {version} answers", flush=True)
        yield Head(address, {**environment, "RAY_ADDRESS": context.address_info["address"]})
    finally:
        ray.shutdown()


def main() -> int:
    """Run the demos. Raises AssertionError if one fails."""
    (program,) = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name, object_store(program) as endpoint:
        folder = Path(name)
        write_pictures(folder / "pictures")
        write_reviews(folder)
        write_table(folder / "table.csv")
        own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "RAY_DEDUP_LOGS": "0"}
        own |= {"RAY_COLOR_PREFIX": "0", "RAY_AIR_NEW_OUTPUT": "0", **KEYS, "AWS_S3_ENDPOINT": endpoint}
        with cluster(own) as head:
            _try(head, folder)
        _look(endpoint)
    return 0


def _try(head: Head, folder: Path) -> None:
    where: tuple[str, ...] = (
        "--workers=3",
        "--epochs=20",
        "--batch=8",
        "--learning-rate=0.1",
        f"--folder={folder / 'pictures'}",
    )
    losses = [line["loss"] for line in head.run("jobtest", *where) if "epoch" in line]
    assert len(losses) == 20, losses
    assert losses[-1] < losses[0] - 0.5, losses
    print(f"jobtest: loss {losses[0]:.2f} to {losses[-1]:.2f} in 20 epochs with 3 workers", flush=True)

    where = (f"--model={folder / 'model'}", f"--dataset={folder / 'reviews'}")
    learns = ("--reviews=32", "--epochs=6", "--learning-rate=0.02")
    (found,) = (line for line in head.run("interactivetest", *where, *learns) if "checkpoint" in line)
    assert found["checkpoint"].startswith(f"{DEFAULT}/interactive/"), found
    assert found["accuracy"] == 1, found
    print(f"interactivetest: accuracy {found['accuracy']:.2f}; its checkpoint is {found['checkpoint']}", flush=True)

    (best,) = (line for line in head.run("tunecluster", f"--table={folder / 'table.csv'}") if "max_depth" in line)
    assert best["trials"] == 2, best
    assert best["loss"] < 0.3, best
    print(f"tunecluster: the best of {best['trials']} trials has depth {best['max_depth']}", flush=True)


def _look(endpoint: str) -> None:
    """Assert that the bucket has checkpoints of exactly both demos."""
    store = fs.S3FileSystem(
        access_key="workbench", secret_key="made-up", endpoint_override=endpoint.removeprefix("http://"), scheme="http"
    )
    files = [found.path for found in store.get_file_info(fs.FileSelector(DEFAULT, recursive=True)) if found.is_file]
    kept = {path.split("/")[1] for path in files if "/checkpoint_" in path}
    assert kept == {"interactive", "tune"}, files
    print(f"the bucket has {len(files)} files, checkpoints of both among them", flush=True)


if __name__ == "__main__":
    sys.exit(main())
