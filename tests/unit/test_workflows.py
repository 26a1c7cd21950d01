"""The workflows are pinned, have no more rights than they use, and give a pull request's code no token that writes."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.ending import FAILED, FOUND
from emulator.cluster import controlplane
from emulator.cluster.layout import Layout
from emulator.cluster.ports import NAMES, Ports
from emulator.paths import Paths
from review.markdown import MARKER
from tests.local import official

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+){1,2}$")
READING = {"contents": "read"}
RIGHTS = {
    ("available", "check"): READING,
    ("available", "report"): {"issues": "write"},
    ("ci", None): READING,
    ("official", None): READING,
    ("review", "preview"): READING,
    ("review", "comment"): {**READING, "pull-requests": "write"},
    ("drift", "check"): {**READING, "id-token": "write"},
    ("drift", "report"): {"issues": "write"},
    ("release", "build"): READING,
    ("site", "build"): READING,
    ("site", "publish"): {"contents": "write"},
    ("release", "publish"): {"attestations": "write", "contents": "write", "id-token": "write"},
}
"""The permissions of each job. A job that is not listed has those of its workflow."""


def load(name: str) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as true.
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
    return {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}


def jobs(name: str) -> Mapping[str, dict[str, Any]]:
    found: Mapping[str, dict[str, Any]] = load(name)["jobs"]
    return found


def steps() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for file in FILES:
        for job, body in jobs(file.stem).items():
            for step in body["steps"]:
                yield file.stem, job, step


def test_there_are_seven() -> None:
    assert [file.stem for file in FILES] == ["available", "ci", "drift", "official", "release", "review", "site"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_action_is_pinned_to_a_commit_with_its_version(file: Path) -> None:
    uses = [line.strip().removeprefix("- ") for line in file.read_text().splitlines() if "uses:" in line]
    assert all(PINNED.match(line) for line in uses), uses


def test_one_action_has_one_commit_everywhere() -> None:
    pins: dict[str, set[str]] = {}
    for file in FILES:
        for action, commit in re.findall(r"uses: ([\w./-]+)@(\S+ # \S+)", file.read_text()):
            pins.setdefault(action, set()).add(commit)
    assert all(len(found) == 1 for found in pins.values()), pins


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_code_of_a_pull_request_never_runs_with_the_rights_of_the_base(file: Path) -> None:
    assert not {"pull_request_target", "workflow_run"} & set(load(file.stem)["on"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_jobs_have_the_rights_that_they_use_and_no_others(file: Path) -> None:
    workflow = load(file.stem)
    assert workflow["permissions"] == RIGHTS.get((file.stem, None), {})
    for name, job in jobs(file.stem).items():
        assert job.get("permissions") == RIGHTS.get((file.stem, name)), name


def test_a_job_that_can_write_runs_no_code_of_the_checkout() -> None:
    for file in FILES:
        for name, job in jobs(file.stem).items():
            writes = {right for right, level in (job.get("permissions") or {}).items() if level == "write"}
            if writes - {"id-token"}:
                assert not any("checkout" in step.get("uses", "") for step in job["steps"]), name


def test_checkouts_leave_no_token_behind() -> None:
    checkouts = [step for _, _, step in steps() if "actions/checkout" in step.get("uses", "")]
    assert checkouts
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_nothing_that_somebody_else_writes_becomes_part_of_a_script() -> None:
    scripts = [(name, job, step["run"]) for name, job, step in steps() if "run" in step]
    assert scripts
    for name, job, script in scripts:
        assert "${{" not in script, (name, job)


def test_every_job_ends() -> None:
    for file in FILES:
        for name, job in jobs(file.stem).items():
            assert 0 < job["timeout-minutes"] <= 240, (file.stem, name)
            assert job["runs-on"] == "ubuntu-24.04"


def test_continuous_integration_runs_what_the_readme_says() -> None:
    assert [step["run"] for step in jobs("ci")["test"]["steps"] if "run" in step][-1] == ".ci/run"
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_the_go_that_is_installed_is_new_enough_for_every_tool() -> None:
    def directive(file: Path) -> tuple[int, ...]:
        found = re.search(r"^go ([\d.]+)$", file.read_text(), re.MULTILINE)
        assert found
        return tuple(int(part) for part in found[1].split("."))

    (wanted,) = {step["with"]["go-version-file"] for _, _, step in steps() if "setup-go" in step.get("uses", "")}
    assert directive(ROOT / wanted) == max(map(directive, (ROOT / "emulator" / "tools").glob("*/go.mod")))


def official_steps() -> str:
    return "\n".join(step["run"] for step in jobs("official")["test"]["steps"] if "run" in step)


def test_the_official_providers_are_tested_every_night_and_where_a_version_changes() -> None:
    events = load("official")["on"]
    assert events["schedule"] == [{"cron": "47 3 * * *"}]
    catalogues = {str(file.relative_to(ROOT)) for file in (ROOT / "components").rglob("catalogue.yaml")}
    for event in ("push", "pull_request"):
        assert catalogues | {"uv.lock"} <= set(events[event]["paths"])
        assert all((ROOT / path).is_file() for path in events[event]["paths"])


def test_the_official_providers_run_the_same_tests_on_a_cluster_that_a_variable_names() -> None:
    job = jobs("official")["test"]
    assert job["env"][official.CLUSTER] == "${{ github.workspace }}/kind.kubeconfig"
    assert [step["run"] for step in job["steps"] if step.get("name") == "Run the tests"] == [
        ".venv/bin/python -m pytest tests/local"
    ]
    assert f"for name in {' '.join(official.PLUGINS)}; do" in official_steps()
    assert "MLBATCH_MIRROR" not in job["env"]
    assert re.fullmatch(r"kindest/node:v[\d.]+@sha256:[0-9a-f]{64}", job["env"]["NODE"])


def test_the_cluster_of_the_official_providers_has_the_local_clusters_minor_version() -> None:
    local = re.search(r"k8s\.io/kubernetes v(\d+\.\d+)\.", (ROOT / "emulator/tools/core/go.mod").read_text())
    assert local
    assert jobs("official")["test"]["env"]["NODE"].startswith(f"kindest/node:v{local[1]}.")


def test_nodes_are_simulated_there_as_here(tmp_path: Path) -> None:
    layout, ports = Layout(Paths.of(state=tmp_path)), Ports(*range(1, 1 + len(NAMES)))
    layout.make_folders()
    controlplane.prepare(layout, ports, controlplane.Parts())
    found = controlplane.processes(layout, ports, controlplane.Parts())
    command = next(spec.command for spec in found if spec.name == "kwok")
    same = [option for option in command[1:] if not option.startswith(("--kubeconfig", "--config", "--server"))]
    assert len(same) == 3
    assert all(option in official_steps() for option in same)
    assert f"--config {controlplane.STAGES.relative_to(ROOT)}" in official_steps()


def test_the_review_is_compared_with_the_base_and_posted_once() -> None:
    preview, comment = (jobs("review")[name] for name in ("preview", "comment"))
    run = next(step for step in preview["steps"] if "make" in step.get("run", ""))
    assert run["run"] == 'make --silent review BASE="$BASE" > "$RUNNER_TEMP/review.md"'
    assert run["env"] == {"BASE": "origin/${{ github.base_ref }}"}
    assert preview["steps"][0]["with"]["fetch-depth"] == 0
    post = comment["steps"][-1]["run"]
    assert f'startswith("{MARKER}")' in post
    assert "--method PATCH" in post
    assert "--method POST" in post


def test_a_fork_gets_a_summary_and_no_comment() -> None:
    assert "head.repo.full_name == github.repository" in jobs("review")["comment"]["if"]
    assert any("GITHUB_STEP_SUMMARY" in step.get("run", "") for step in jobs("review")["preview"]["steps"])


def test_a_release_publishes_what_one_job_built_without_a_cache_for_its_tag() -> None:
    build, publish = (jobs("release")[name] for name in ("build", "publish"))
    assert [step["run"] for step in build["steps"] if "run" in step] == ['make release TAG="$GITHUB_REF_NAME"']
    assert not any("actions/cache" in step.get("uses", "") for step in build["steps"])
    assert [step["with"]["cache"] for step in build["steps"] if "setup-go" in step.get("uses", "")] == [False]
    attested = next(step for step in publish["steps"] if "attest-build-provenance" in step.get("uses", ""))
    assert attested["with"]["subject-path"] == "*"
    assert publish["steps"][-1]["run"].startswith('gh release create "$GITHUB_REF_NAME" --verify-tag ')
    assert publish["steps"][-1]["run"].endswith(" ./*\n"), "every built file is attached"


def test_the_site_is_built_for_each_change_and_published_from_main_and_releases() -> None:
    build, publish = (jobs("site")[name] for name in ("build", "publish"))
    assert set(load("site")["on"]) == {"push", "pull_request"}
    assert "make site" in [step.get("run") for step in build["steps"]]
    commit = next(step for step in build["steps"] if "mike deploy" in step.get("run", ""))
    assert commit["if"] == publish["if"] == "${{ github.event_name == 'push' }}"


def test_images_charts_and_files_are_requested_every_night() -> None:
    assert load("available")["on"]["schedule"] == [{"cron": "11 4 * * *"}]
    request = next(step["run"] for step in jobs("available")["check"]["steps"] if step.get("id") == "request")
    catalogues = sorted((ROOT / "components").rglob("catalogue.yaml"))
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in catalogues}
    assert names == set(re.findall(r"components(?:\.\w+)?\.catalogue", request))
    (known,) = re.findall(r"fromJSON\('(.*?)'\)", jobs("available")["report"]["if"])
    assert json.loads(known) == ["clean", "missing"], "a registry that is busy changes no issue"


def test_drift_is_looked_at_every_night_without_changing_anything() -> None:
    workflow = load("drift")
    assert workflow["on"]["schedule"] == [{"cron": "23 2 * * *"}]
    script = next(step["run"] for step in jobs("drift")["check"]["steps"] if step.get("id") == "compare")
    assert "refresh --preview-only" in script
    assert "--expect-no-changes" in script
    assert not re.search(r"pulumi (up|destroy|import|state)\b", script)
    assert './mlbatch drift --stack "$STACK"' in script
    assert f'{FOUND}) [ "$result" = failed ] || result=drift' in script
    assert f"code={FAILED}\n" in script
    assert "--no-values" in script
    assert "--fix" not in script


def test_drift_without_credentials_is_a_notice() -> None:
    look = jobs("drift")["configured"]["steps"][0]
    assert "::notice" in look["run"]
    assert jobs("drift")["check"]["if"] == "${{ needs.configured.outputs.complete == 'true' }}"


def test_what_signs_in_is_in_an_environment_that_others_branches_do_not_get_to() -> None:
    for file in FILES:
        for name, job in jobs(file.stem).items():
            signs_in = "secrets." in str(job) or (job.get("permissions") or {}).get("id-token") == "write"
            assert job.get("environment") == (file.stem if signs_in else None), (file.stem, name)
    section = (ROOT / "docs" / "drift.md").read_text().split("## Check every night")[1].split("\n## ")[0]
    assert "environment:drift" in section
    assert "refs/heads/main" not in section


def test_the_passphrase_reaches_one_step_and_is_nowhere_a_plain_value() -> None:
    holders = [step for _, _, step in steps() if "secrets.PULUMI_CONFIG_PASSPHRASE }}" in str(step.get("env"))]
    assert [step["id"] for step in holders] == ["compare"]
    for file in FILES:
        assert not re.search(r"(password|client-secret|creds):", file.read_text())
