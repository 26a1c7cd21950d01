"""The Dockerfiles in images/ lint, pin what they fetch as the catalogue does, and create the paths that jobs use."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from components import catalogue
from components.azure import fabric, sizes
from components.workloads import mpi, nccl, olmo
from stacks.settings.workloads import MetaseqSettings, NcclSettings, OlmoSettings

IMAGES = Path(__file__).parents[2] / "images"
FILES = {file.parent.name: file for file in sorted(IMAGES.glob("*/Dockerfile"))}
BASES = {"nccltest": catalogue.NCCL_TESTS, "metaseq": catalogue.PYTORCH, "olmo": catalogue.PYTHON}


def instructions(name: str) -> list[tuple[str, str]]:
    """Return the instructions of an image's Dockerfile with their arguments on one line."""
    lines = [line for line in FILES[name].read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line]


def added(name: str) -> dict[str, str]:
    """Return the sources that an image adds, by folder."""
    return {words[-1]: words[0] for kind, rest in instructions(name) if kind == "ADD" for words in [rest.split()]}


def ran(name: str) -> str:
    """Return the commands that build an image."""
    return "\n".join(rest for kind, rest in instructions(name) if kind == "RUN")


def test_each_job_with_an_image_of_the_site_has_a_dockerfile() -> None:
    assert set(FILES) == {job.repository for job in (NcclSettings, MetaseqSettings, OlmoSettings)} == set(BASES)


@pytest.mark.parametrize("name", FILES)
def test_hadolint_finds_nothing(name: str) -> None:
    hadolint = shutil.which("hadolint", path=sysconfig.get_path("scripts"))
    assert hadolint, "run `make lint` once: it installs the packages of uv.lock"
    command = [hadolint, "--config", str(IMAGES / ".hadolint.yaml"), str(FILES[name])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", FILES)
def test_bases_and_sources_are_those_of_the_catalogue(name: str) -> None:
    bases = [rest for kind, rest in instructions(name) if kind == "FROM"]
    assert bases == [BASES[name].reference]
    pinned = {f"{each.url}.git#{each.commit}" for each in catalogue.REPOSITORIES.values()}
    assert {source.removesuffix(":topology") for source in added(name).values()} <= pinned
    assert not re.search(r"\b(git|curl|wget)\b", ran(name)), "fetch with ADD and a commit"


@pytest.mark.parametrize("name", FILES)
def test_every_package_of_pip_has_one_version(name: str) -> None:
    for command in re.findall(r"pip install .*?(?= && |$)", ran(name), re.MULTILINE):
        assert "--no-deps" in command
    locked = FILES[name].with_name("requirements.txt")
    if locked.exists():
        packages = [line for line in locked.read_text().splitlines() if not line.startswith("#")]
        assert packages
        assert [line for line in packages if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_jobs_find_what_they_start() -> None:
    for name in ("nccltest", "metaseq"):
        assert "openssh-server" in ran(name)
        assert ("WORKDIR", mpi.WORKSPACE) in instructions(name)
    source = nccl.PROGRAM.test.removesuffix("/build/all_reduce_perf")
    assert source in added("nccltest")
    assert f"make -C {source} " in ran("nccltest")
    assert added("olmo")[olmo.FOLDER].startswith(catalogue.REPOSITORIES["olmo"].url)
    assert ("WORKDIR", olmo.FOLDER) in instructions("olmo")
    folder, _, file = olmo.TRAINING.rpartition("/")
    assert Path(folder, file).match("configs/official-*/*.yaml")
    assert f"file://{olmo.INPUT}|g' configs/official-*/*.yaml" in ran("olmo")


@pytest.mark.parametrize(
    ("name", "folder"), [("nccltest", nccl.PROGRAM.topologies), ("metaseq", mpi.WORKSPACE), ("olmo", olmo.TOPOLOGIES)]
)
def test_topology_files_are_where_nccl_looks(name: str, folder: str) -> None:
    assert added(name)[folder].endswith(":topology")
    used = {size.topology for size in sizes.GPU_SIZES.values()} - {None}
    assert used == {fabric.SRIOV.topology, "ndv4-topo.xml"}, "files of Azure/azhpc-images, topology"
