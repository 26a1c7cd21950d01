"""Batch inference with vLLM: the objects against MLBatch's tutorial, and the two containers' programs, executed."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from components.kubernetes.manifests import Document
from components.kubernetes.node_pool import GPU_TOLERATION
from components.kubernetes.placement import NodeGroup
from components.workloads import vllm
from components.workloads.interface import Storage
from components.workloads.submission import Submission, SubmissionMode
from components.workloads.vllm import Vllm, VllmArgs
from lab.dashboards.ports import free_port
from tests.unit.harness import on_cluster
from tests.unit.test_workloads import pod_of

TEAM = Submission(mode=SubmissionMode.MLBATCH, namespace="blue", user="alice")
PLAIN = Submission(mode=SubmissionMode.NONE, namespace="workloads")
SAFE = VllmArgs(
    submission=TEAM,
    image="docker.io/vllm/vllm-openai:v0.31.0",
    cpu="4",
    memory="64Gi",
    generator_cpu="1",
    generator_memory="4Gi",
    placement=NodeGroup(tolerations=[GPU_TOLERATION]),
    claim="granite-3.2-8b-instruct",
    storage=Storage(storage_class="nfs-client-pokprod", size="50Gi"),
    start_seconds=3600,
    deadline_seconds=21600,
)


def containers(args: VllmArgs) -> tuple[Document, Document]:
    server, generator = pod_of(vllm.documents("batch-inference", args))["containers"]
    return server, generator


class TestSafeForm:
    def test_several_gpus_divide_the_model_and_share_memory(self) -> None:
        server, generator = containers(replace(SAFE, gpus=4, gpu_resource="example.org/gpu"))
        assert server["resources"]["limits"]["example.org/gpu"] == "4"
        assert "--tensor-parallel-size=4" in server["command"][2]
        assert server["volumeMounts"] == [*generator["volumeMounts"], {"name": "shm", "mountPath": "/dev/shm"}]
        alone, _ = containers(SAFE)
        assert "--tensor-parallel-size" not in alone["command"][2]

    def test_priority_and_nodes_are_those_that_are_given(self) -> None:
        submission = replace(TEAM, priority_class="high-priority")
        nodes = NodeGroup(node_selector={"pool": "gpu"}, tolerations=[GPU_TOLERATION])
        pod = pod_of(vllm.documents("b", replace(SAFE, submission=submission, placement=nodes)))
        assert pod["priorityClassName"] == "high-priority"
        assert (pod["nodeSelector"], pod["tolerations"]) == ({"pool": "gpu"}, [GPU_TOLERATION])

    def test_without_a_queue_it_is_a_plain_job(self) -> None:
        _, job = vllm.documents("b", replace(SAFE, submission=PLAIN))
        assert (job["kind"], job["metadata"]["namespace"]) == ("Job", "workloads")

    def test_the_volume_stands_first_and_a_changed_batch_is_submitted_anew(self) -> None:
        built = on_cluster(lambda opts: Vllm("batch-inference", SAFE, opts))
        claim, wrapper = built.objects()
        assert (claim.kind, wrapper.kind) == ("PersistentVolumeClaim", "AppWrapper")
        assert claim.urn in wrapper.dependencies
        assert wrapper.replace_on_changes == ("metadata", "spec")
        assert claim.replace_on_changes == ()


STAND_IN = """
import http.server, json, os, pathlib, sys, threading, time, urllib.request
here, port = pathlib.Path(os.environ["STAND_IN"]), int(os.environ["STAND_IN_PORT"])
words = sys.argv[1:] if pathlib.Path(sys.argv[0]).name == "vllm" else ["bench", "serve", *sys.argv[1:]]
options = dict(word[2:].split("=") for word in words if word.startswith("--"))
(here / f"{words[0]}.json").write_text(json.dumps(words))
mode = os.environ.get("STAND_IN_MODE", "")

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if mode == "never ready" else 200)
        self.end_headers()
    def do_POST(self):
        with (here / "requests").open("a") as seen:
            seen.write(self.path + chr(10))
        if mode == "dies":
            os._exit(9)
        self.do_GET()
    def log_message(self, *words):
        pass

if words[0] == "serve":
    if mode == "fails":
        sys.exit(3)
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()
else:
    for _ in range(int(options["num-prompts"])):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/completions", data=b"{}", timeout=5).read()
        except OSError:
            print("a request has failed")
    print("Mean TTFT (ms): 1.0  Mean TPOT (ms): 1.0")
    sys.exit(4 if mode == "batch fails" else 0)
"""
"""Plays `vllm serve`, `vllm bench serve` and the tutorial's benchmark_serving.py, over real connections."""


class Pod:
    """Both programs as processes of this machine, with the folder and the port that containers of one pod share."""

    def __init__(self, folder: Path, args: VllmArgs, mode: str) -> None:
        self.folder, self.config, port = folder, folder / "config", free_port()
        self.config.mkdir()
        (folder / "bin").mkdir()
        programs = {"bin/vllm": f"#!{sys.executable}\n{STAND_IN}", "benchmark_serving.py": STAND_IN}
        programs["bin/sleep"] = f"#!/bin/sh\nexec {shutil.which('sleep')} 0.05\n"
        for name, text in programs.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        own = {"STAND_IN": str(folder), "STAND_IN_PORT": str(port), "STAND_IN_MODE": mode}
        self.environment = {**os.environ, **own, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
        self.port = port
        self.server, self.generator = (self._start(container) for container in containers(args))

    def _start(self, container: Document) -> subprocess.Popen[str]:
        *shell, script = container["command"]
        script = script.replace("/.config", str(self.config)).replace("8000", str(self.port))
        return subprocess.Popen(
            [*shell, script],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ended(self) -> tuple[int, int]:
        """Return the exit codes of server and generator, once both have ended."""
        return self.server.wait(timeout=60), self.generator.wait(timeout=60)

    def said(self) -> str:
        """Return the files that the generator wrote."""
        assert self.generator.stdout is not None
        return self.generator.stdout.read()

    def requests(self) -> int:
        found = self.folder / "requests"
        return len(found.read_text().splitlines()) if found.exists() else 0

    def close(self) -> None:
        """End the remaining processes of both, like the end of their containers."""
        for process in (self.server, self.generator):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=60)


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Any]:
    pods: list[Pod] = []

    def start(mode: str = "", **values: Any) -> Pod:
        pods.append(Pod(tmp_path, replace(SAFE, requests=5, **values), mode))
        return pods[-1]

    yield start
    for each in pods:
        each.close()


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("image", [None, "quay.io/tardieu/vllm-benchmarks:v0.7.3"])
def test_the_batch_is_sent_when_the_server_answers_and_then_both_end(
    pod: Any, bounded: bool, image: str | None
) -> None:
    one = pod(bounded=bounded, generator_image=image)
    assert one.ended() == (0, 0)
    assert one.requests() == 5
    assert "TTFT" in one.said()
    assert "ibm-granite/granite-3.2-8b-instruct" in (one.folder / "serve.json").read_text()
    assert "--max-concurrency=16" in (one.folder / "bench.json").read_text()


def test_a_server_that_fails_ends_the_job(pod: Any) -> None:
    one = pod("fails")
    assert one.ended() == (70, 70)
    assert "see the log of container vllm" in one.said()
    assert one.server.stdout.read() == "vllm serve ended with exit code 3\n"


def test_a_server_that_does_not_answer_in_time_ends_the_job(pod: Any) -> None:
    one = pod("never ready", start_seconds=3)
    assert one.ended() == (0, 70), "it is told to halt; the generator's exit code fails the pod"
    assert "does not answer after 3 s" in one.said()
    assert one.requests() == 0


def test_a_server_that_dies_over_the_batch_fails_the_job(pod: Any) -> None:
    one = pod("dies")
    assert one.ended()[1] == 70
    assert "the server has ended over the batch" in one.said()
    assert one.requests() == 1


def test_a_batch_that_fails_fails_the_job_and_frees_the_gpu(pod: Any) -> None:
    assert pod("batch fails").ended() == (0, 4)


def test_the_tutorials_form_waits_for_a_server_that_has_failed(pod: Any) -> None:
    """It is not the default, because it holds its GPU until a person looks at it."""
    one = pod("fails", bounded=False)
    while not (one.folder / "serve.json").exists():
        time.sleep(0.05)
    time.sleep(1)
    assert (one.server.poll(), one.generator.poll()) == (None, None)
