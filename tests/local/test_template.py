"""`pulumi new` makes a project of this repository, which it uses as a template."""

import os
import shutil
import subprocess
from pathlib import Path

import yaml

from emulator.paths import Paths
from runner.environment import inherited
from tests.local.environment import ROOT


def test_a_new_project_is_a_copy_under_the_same_name(paths: Paths, tmp_path: Path) -> None:
    """The project's name is the prefix of its settings, so `pulumi new` must keep it."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    template, made = tmp_path / "template", tmp_path / "made"
    for name in listed:
        (template / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, template / name)
    variables = {
        **inherited(),
        "PATH": f"{paths.bin}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    command = [paths.bin / "pulumi", "new", template, "--offline", "--generate-only", "--yes", "--dir", made]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Replace the values marked "yours"' in done.stdout
    changed = [name for name in listed if (made / name).read_bytes() != (ROOT / name).read_bytes()]
    assert changed == ["Pulumi.yaml"]
    project, ours = (yaml.safe_load((folder / "Pulumi.yaml").read_text()) for folder in (made, ROOT))
    del ours["template"], project["config"]["pulumi:tags"]
    assert project == ours
    assert os.access(made / "mlbatch", os.X_OK)
