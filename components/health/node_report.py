"""Judges what a health check has printed, and writes the verdict on the node that it ran on.

Runs in the check's pod; standard library only. There are four states:

    pass     everything was measured and is as it should be
    warn     measured, and close to a limit
    fail     measured, and beyond a limit
    unknown  not measured: the check was skipped, did not run to its end, or printed what nobody understands

What was not measured is never a pass. Of several findings the worst counts, and unknown is worse than warn.

On the node, a label has the state, and an annotation the state with time, trigger and reason. A failed node gets a
taint and, where queues are to know, the label that AppWrapper and the slack controller watch; pass and warn take both
away again, unless another check of this kind still says fail. An unknown node keeps what it has.

The pod's own account may change these labels, annotations and taints of this very node only; the cluster's admission
policy sees to it.

Usage: python -m components.health.node_report SETTINGS mark, before the check, sets the state to unknown, so that a
check which never ends leaves no older verdict behind; with `report`, after it. SETTINGS is a JSON file with `check`,
its name; `kind`, nhc or nccl; `output` and `exitCode`, files; `trigger`; `write`, whether the node is to be changed;
`label`, `annotation` and `failLabels`, all labels of such checks; `taint`, with key, value and effect, or null;
`queueLabel` with key and value, or null; and, for nhc, `expected`, the checks that must have run, and `notApplicable`,
the fault code of one that could not be made; for nccl, `ranks`, `bytes`, `warn` and `fail`. $NODE_NAME is the node. The
verdict is printed and becomes the container's termination message; the exit code is 0 for pass and warn, 1 for fail, 2
for unknown.
"""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote

from components.kubernetes.in_cluster import Api, Json

PASS, WARN, UNKNOWN, FAIL = "pass", "warn", "unknown", "fail"
SEVERITY = (PASS, WARN, UNKNOWN, FAIL)
EXIT_CODES = {PASS: 0, WARN: 0, FAIL: 1, UNKNOWN: 2}

ACCOUNT = Path("/var/run/secrets/mlbatch")
TERMINATION = Path("/dev/termination-log")
REQUEST_SECONDS = 30
ATTEMPTS = 5
LONGEST_REASON = 1000


@dataclass(frozen=True)
class Verdict:
    """A state and why. measured: the figure that was judged, where there is one."""

    state: str
    reason: str
    measured: float | None = None

    def body(self) -> Json:
        """Return the verdict for a report."""
        figure = {} if self.measured is None else {"busBandwidthGBs": self.measured}
        return {"state": self.state, "reason": self.reason[:LONGEST_REASON], **figure}


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst of some verdicts, with the reasons of all that are as bad."""
    state = max((verdict.state for verdict in verdicts), key=SEVERITY.index)
    reasons = [verdict.reason for verdict in verdicts if verdict.state == state]
    return Verdict(state, "; ".join(dict.fromkeys(reasons)))


def judge_checks(output: str, exit_code: int | None, expected: list[str], not_applicable: str) -> Verdict:
    """Judge the log of Node Health Check, which must have been told to run all checks and to name each.

    not_applicable: the fault code of a check that could not be made.
    """
    if exit_code is None:
        return Verdict(UNKNOWN, "the checks did not run to their end")
    verdicts = []
    for line in output.splitlines():
        if "Health check failed:" in line:
            found = line.partition("Health check failed:")[2].strip()
            verdicts.append(Verdict(UNKNOWN if not_applicable in found else FAIL, found))
        elif "Nearing a failure threshold:" in line:
            verdicts.append(Verdict(WARN, line.partition("Nearing a failure threshold:")[2].strip()))
        elif re.search(r"not found\. Skipping|test skipped", line):
            verdicts.append(Verdict(UNKNOWN, line.strip()))
    ran = {match.strip() for match in re.findall(r'Running check:\s+"([^"]*)"', output)}
    missing = [check for check in expected if check not in ran]
    if missing:
        verdicts.append(Verdict(UNKNOWN, f"not run: {', '.join(missing)}"))
    if exit_code != 0 and not any(verdict.state in (FAIL, UNKNOWN) for verdict in verdicts):
        verdicts.append(Verdict(UNKNOWN, f"the checks ended with {exit_code} and named no failure"))
    return worst(verdicts) if verdicts else Verdict(PASS, f"{len(expected)} checks passed")


def judge_nccl(output: str, exit_code: int | None, *, ranks: int, size: int, warn: float, fail: float) -> Verdict:
    """Judge what nccl-tests' all_reduce_perf has printed: the bandwidth of its largest messages.

    ranks: processes that must have taken part. size: bytes that the largest messages must have had. The figure is the
    mean of the out-of-place and in-place rows, as in nccl-tests' own summary of a run with one size.
    """
    if exit_code is None:
        return Verdict(UNKNOWN, "the test did not run to its end")
    took_part = {int(rank) for rank in re.findall(r"^#\s+Rank\s+(\d+)\s", output, re.MULTILINE)}
    rows = [row for row in map(_row, output.splitlines()) if row is not None]
    wrong = sum(row.wrong or 0 for row in rows)
    if wrong:
        return Verdict(FAIL, f"{wrong} wrong results")
    if re.search(r"Out of bounds values\s*:\s*\d+\s+FAILED", output):
        return Verdict(FAIL, "values out of bounds")
    if exit_code != 0:
        return Verdict(UNKNOWN, f"the test ended with {exit_code}")
    if len(took_part) < ranks:
        return Verdict(UNKNOWN, f"{len(took_part)} processes took part, {ranks} were to")
    if not rows:
        return Verdict(UNKNOWN, "the test printed no figures")
    last = max(rows, key=lambda row: row.size)
    if last.size < size:
        return Verdict(UNKNOWN, f"the largest messages had {last.size} bytes, {size} were asked for")
    if last.wrong is None:
        return Verdict(UNKNOWN, "the test did not check its results")
    found = last.bandwidth
    if not 0 < found < float("inf"):
        return Verdict(UNKNOWN, f"{found} GB/s is no measurement")
    said = f"{found:.2f} GB/s of bus bandwidth at {last.size} bytes"
    if found < fail:
        return Verdict(FAIL, f"{said}, below {fail:g}", found)
    if found < warn:
        return Verdict(WARN, f"{said}, below {warn:g}", found)
    return Verdict(PASS, said, found)


@dataclass(frozen=True)
class Row:
    """One line of figures. wrong: results that were wrong, None where they were not checked."""

    size: int
    bandwidth: float
    wrong: int | None


def _row(line: str) -> Row | None:
    """Return a line of all_reduce_perf's table, None for any other line.

    Its columns: size, count, type, operation, root, and twice time, algorithm bandwidth, bus bandwidth, wrong results.
    """
    words = line.split()
    if len(words) != 13 or not words[0].isdigit():
        return None
    try:
        bandwidth = (float(words[7]) + float(words[11])) / 2
        wrong = None if "N/A" in (words[8], words[12]) else int(float(words[8])) + int(float(words[12]))
    except ValueError:
        return None
    return Row(int(words[0]), bandwidth, wrong)


def judge(settings: Json) -> Verdict:
    """Judge what the check has left behind."""
    output = _text(settings["output"]) or ""
    code = (_text(settings["exitCode"]) or "").strip()
    exit_code = int(code) if code.lstrip("-").isdigit() else None
    if settings["kind"] == "nhc":
        return judge_checks(output, exit_code, settings["expected"], settings["notApplicable"])
    return judge_nccl(
        output,
        exit_code,
        ranks=settings["ranks"],
        size=settings["bytes"],
        warn=settings["warn"],
        fail=settings["fail"],
    )


def change(node: Json, verdict: Verdict, settings: Json, now: str) -> Json:
    """Return the merge patch that puts a verdict on a node."""
    metadata = node["metadata"]
    labels = {**(metadata.get("labels") or {}), settings["label"]: verdict.state}
    report = {**verdict.body(), "check": settings["check"], "trigger": settings["trigger"], "time": now}
    changed: Json = {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "labels": {settings["label"]: verdict.state},
            "annotations": {settings["annotation"]: json.dumps(report, sort_keys=True)},
        }
    }
    queue, taint = settings["queueLabel"], settings["taint"]
    elsewhere = any(labels.get(label) == FAIL for label in settings["failLabels"])
    if queue is not None:
        if verdict.state == FAIL:
            changed["metadata"]["labels"][queue["key"]] = queue["value"]
        elif verdict.state in (PASS, WARN) and not elsewhere and labels.get(queue["key"]) == queue["value"]:
            changed["metadata"]["labels"][queue["key"]] = None
    if taint is not None and verdict.state != UNKNOWN:
        before = node.get("spec", {}).get("taints") or []
        others = [item for item in before if item["key"] != taint["key"]]
        same = [item for item in before if item["key"] == taint["key"] and item["effect"] == taint["effect"]]
        after = [*others, *(same or [taint])] if verdict.state == FAIL else others
        if after != before:
            changed["spec"] = {"taints": after}
    return changed


def write(name: str, verdict: Verdict, settings: Json) -> None:
    """Put a verdict on the node; somebody else's change in between is read and kept."""
    api, path = Api.in_cluster(ACCOUNT, REQUEST_SECONDS), f"/api/v1/nodes/{quote(name)}"
    for attempt in range(ATTEMPTS):
        node = api.get(path)
        patch = change(node, verdict, settings, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        try:
            api.patch(path, patch)
            return
        except HTTPError as error:
            if error.code != 409 or attempt == ATTEMPTS - 1:
                raise RuntimeError(f"the node was not changed: {error.code} {error.read().decode()}") from error


def _text(file: str) -> str | None:
    try:
        return Path(file).read_text(errors="replace")
    except OSError:
        return None


def main(file: str, step: str) -> int:
    """Mark the node or report on it; return the exit code."""
    settings: Json = json.loads(Path(file).read_text())
    name = os.environ["NODE_NAME"]
    if step == "mark":
        write(name, Verdict(UNKNOWN, "the check has begun"), settings)
        return 0
    print(_text(settings["output"]) or "no output", flush=True)
    verdict = judge(settings)
    said = json.dumps({"node": name, "check": settings["check"], **verdict.body()})
    print(said, flush=True)
    if os.access(TERMINATION, os.W_OK):
        TERMINATION.write_text(said)
    if settings["write"]:
        write(name, verdict, settings)
    return EXIT_CODES[verdict.state]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
