"""Batch jobs of a stack's settings as manifests, for a member of a team to submit (`mlbatch jobs`).

The job does not have to be enabled in the stack. This module only reads: the settings and, on an existing cluster, the
API server.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from stacks.config import parsing, stack_file
from stacks.config.errors import ConfigError, SettingsError, key, listed
from stacks.config.inputs import StackInputs, interpret
from stacks.settings.submission import WorkloadSettings
from stacks.settings.workloads import WorkloadsSettings
from stacks.validation.admission import may_be_member

JOBS: Final = ("nccl", "metaseq", "olmo", "vllm", "pretraining", "finetuning")
LOAD: Final = "synthetic"
"""The key for the jobs of a trace, on every target. In the settings it is a sample, not a workload."""
_TREE: Final = "workloads"
_SUBMISSION: Final = "submission"
_SAMPLES: Final = "samples"


_UNWRAPPED_RAY: Final = ConfigError(
    ("tenancy", "unwrappedRay"),
    "the fine-tuning is a RayJob without an AppWrapper, which members cannot create",
    "set it to true, or let the stack submit the job: workloads.finetuning.enabled",
    value=False,
)


def manifest(raw: Mapping[str, Any], job: str, changes: Mapping[str, Any], submission: Mapping[str, str | None]) -> str:
    """Return the job's documents as YAML. Raises SettingsError for settings that the program would reject.

    raw: the configuration, by key without the project's name. changes: settings that replace the job's own, by key. A
    nested key is written `section.key`.
    submission: team and user, if they differ from the settings.
    """
    from stacks.layers.jobs import documents, load

    if job == LOAD:
        inputs = interpret(wanted_load(raw, changes), base=Path.cwd(), environment=os.environ)
        found = load(inputs, **submission)
        if not found:
            teams = listed(dict.fromkeys(job.team for job in inputs.load))
            raise ValueError(f"the trace has no job of team {submission['team']}; it has jobs of {teams}")
        _check_member(inputs, {str(each["metadata"]["namespace"]) for each in found}, submission["user"])
        return _written(found)
    asked = wanted(raw, job, changes, submission)
    if problems := list(_not_queued(job, asked)):
        raise SettingsError(problems)
    inputs = interpret(asked, base=Path.cwd(), environment=os.environ)
    if job == "metaseq" and (problems := list(_without_logs(raw, inputs.settings.workloads))):
        raise SettingsError(problems)
    if job == "finetuning" and not inputs.settings.tenancy.unwrapped_ray:
        raise SettingsError([_UNWRAPPED_RAY])
    return _written(documents(inputs, job))


def _check_member(inputs: StackInputs[Any], teams: Collection[str], user: str | None) -> None:
    """Raise ValueError if the named user is not in each of the teams."""
    for team in inputs.settings.teams:
        if user is not None and team.name in teams and not may_be_member(user, team):
            known = f"its users are {listed(team.users)}" if team.users else "it has none"
            own = [each.name for each in inputs.settings.teams if each.name in teams and may_be_member(user, each)]
            raise ValueError(
                f"--user {user!r}: this user is not in team {team.name}, whose jobs are printed; {known}"
                + (f"; --team {own[0]} prints only the jobs of {own[0]}" if own else "")
            )


def wanted_load(raw: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with the synthetic load switched on, and no other sample.

    A value that should be a mapping but is not stays, and the program rejects it later.
    """
    samples = raw.get(_SAMPLES) or {}
    own = (samples.get(LOAD) or {}) if isinstance(samples, Mapping) else None
    if not isinstance(own, Mapping):
        return dict(raw)
    return {**raw, _SAMPLES: {LOAD: {**_changed(own, changes), "enabled": True}}}


def wanted(
    raw: Mapping[str, Any], job: str, changes: Mapping[str, Any], submission: Mapping[str, str | None]
) -> dict[str, Any]:
    """Return the configuration with the job switched on, and no other workload.

    A value that should be a mapping but is not stays, and the program rejects it later.
    """
    tree = raw.get(_TREE) or {}
    own = (tree.get(job) or {}) if isinstance(tree, Mapping) else None
    if not (isinstance(tree, Mapping) and isinstance(own, Mapping)):
        return dict(raw)
    given = own.get(_SUBMISSION) or {}
    queued = {**own, _SUBMISSION: {**given, "gang": "mlbatch"}} if isinstance(given, Mapping) else own
    named = {f"{_SUBMISSION}.{key}": value for key, value in submission.items() if value is not None}
    others = {
        key: {**value, "enabled": False} if isinstance(value, Mapping) and "enabled" in value else value
        for key, value in tree.items()
    }
    changed = _changed(queued, changes)
    if isinstance(changed[_SUBMISSION], Mapping):
        changed = _changed(changed, named)
    return {**raw, _TREE: {**others, job: {**changed, "enabled": True}}}


def _changed(own: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with others in place of some. changes: by key, one within a section as `section.key`."""
    found = dict(own)
    for path, value in changes.items():
        first, dot, rest = path.partition(".")
        inner = found.get(first)
        found[first] = _changed(inner if isinstance(inner, Mapping) else {}, {rest: value}) if dot else value
    return found


def _not_queued(job: str, asked: Mapping[str, Any]) -> Iterator[ConfigError]:
    """Yield the error of a submission mode that members cannot use. asked: the configuration with the job."""
    partial, _ = parsing.read(asked)
    settings = partial.section(WorkloadsSettings)
    workload = settings.of(WorkloadSettings)[job] if settings is not None else None
    if workload is not None and not workload.queued:
        yield ConfigError(
            (_TREE, job, _SUBMISSION, "gang"),
            "this command prints jobs for members, who submit to a team's queue",
            f"omit --set {_SUBMISSION}.gang, and name the team with --team",
            expected="mlbatch",
            value=str(workload.submission.gang),
        )


def _without_logs(raw: Mapping[str, Any], wanted: WorkloadsSettings) -> Iterator[ConfigError]:
    """Yield the error of a job that mounts the claim for logs in a namespace where the stack does not create it.

    raw: the stack's own configuration, which decides about the claim. wanted: the workloads with the job.
    """
    job, path = wanted.metaseq, (_TREE, "metaseq")
    partial, _ = parsing.read(raw)
    own = partial.section(WorkloadsSettings)
    team = own.metaseq.submission.team if own is not None and own.logs_needed() else None
    wants = job.submission.team
    if team is not None and team == wants:
        return
    for name, writes in (("useAim", job.use_aim), ("useTensorboard", job.use_tensorboard)):
        switch_on = (
            f"let the stack create it: set {key((*path, 'enabled'))} and {key((*path, name))} to true, "
            f"{key((*path, 'submission', 'team'))} to {wants}, and apply it"
        )
        if writes:
            yield ConfigError(
                (*path, name),
                f"the job would wait for claim {wanted.logs.name}, which the stack does not create in "
                f"namespace {wants}",
                f"add --set {name}=false, or {switch_on if team is None else f'name --team {team}'}",
                expected="false" if team is None else f"false, or true with --team {team}",
                value=True,
            )


def _written(found: Sequence[Mapping[str, Any]]) -> str:
    return yaml.dump_all(found, Dumper=_Dumper, sort_keys=False)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are, and what stands twice in a document twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def change(text: str) -> tuple[str, Any]:
    """Return the key and the value of a job's setting, from KEY=VALUE. Raises ValueError."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set {text} is not KEY=VALUE, such as nodes=2")
    if key == "enabled":
        raise ValueError(f"--set {text}: a printed job is always enabled; omit this option")
    if key in ("tag", "image", "size", "data", "training", "model", "generatorImage", "trace") or key.endswith(
        "Revision"
    ):
        return key, value
    try:
        return key, stack_file.value_of(value)
    except ValueError as error:
        raise ValueError(f"--set {text}: {error}") from None
