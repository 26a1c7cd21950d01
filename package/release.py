"""Build the files of a release into `.local/release` (`make release`; `.github/workflows/release.yml` publishes them).

Usage: python package/release.py [TAG]. With a tag, everything has to fit the tag. Without one, it is a rehearsal.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / ".local" / "release"
TOOLS: Final = "mlbatch-toolchain-linux-amd64.tar.gz"
"""The name in the pin, which the local environment downloads."""
NOTES: Final = "NOTES.md"
PIN: Final = ROOT / "emulator" / "tools" / "archive.yaml"


def version() -> str:
    """Return the version of the program, from pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def notes(changelog: str, wanted: str) -> str:
    """Return the changelog's section of a version.

    Raises ValueError if it is not the newest, is empty, or a change has none.
    """
    sections = re.split(r"^## (.+)\n", changelog, flags=re.MULTILINE)[1:]
    titles, texts = sections[::2], [text.strip() for text in sections[1::2]]
    if not re.match(rf"\[Unreleased\] \[{re.escape(wanted)}\] - \d{{4}}-\d\d-\d\d$", " ".join(titles[:2])):
        raise ValueError(f"CHANGELOG.md: write `## [{wanted}] - <date>` below `## [Unreleased]`")
    if texts[0]:
        raise ValueError(f"CHANGELOG.md: move the changes of `Unreleased` to {wanted}, or raise the version")
    if not texts[1]:
        raise ValueError(f"CHANGELOG.md: write the changes of {wanted} into its section, which is empty")
    return texts[1]


def linked(text: str, base: str) -> str:
    """Return notes with links that also work outside the repository. base: URL of the files at the tag."""
    return re.sub(r"\]\((?!https?:)", f"]({base}/", text.replace("](#", "](CHANGELOG.md#"))


def home() -> str:
    """Return the address of the repository, from the site's settings."""
    (found,) = re.findall(r"^repo_url: (\S+)", (ROOT / "website" / "mkdocs.yml").read_text(), re.MULTILINE)
    return str(found)


def check(tag: str) -> None:
    """Raise ValueError if a tag is not that of the version, or the checkout differs from its commit."""
    if tag != f"v{version()}":
        raise ValueError(f"the tag is {tag}, and pyproject.toml has the version {version()}. Change one of them")
    if changed := _output("git", "status", "--porcelain"):
        raise ValueError(f"the checkout differs from its commit. Commit or remove:\n{changed}")


def build() -> str:
    """Write all files except the digests. Return the pin of the tools, without their address."""
    name, python = f"mlbatch-{version()}", sys.executable
    _run("git", "archive", f"--prefix={name}/", f"--output={FOLDER / name}.tar.gz", "HEAD")
    shutil.copy(ROOT / "requirements.txt", FOLDER / f"{name}-requirements.txt")
    # The time of the commit, so that the same commit gives the same wheel.
    os.environ["SOURCE_DATE_EPOCH"] = _output("git", "log", "-1", "--format=%ct")
    wheel = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", f"--wheel-dir={FOLDER}"]
    _run(python, "-m", "pip", "wheel", *wheel, ROOT / "package")
    uv = Path(python).with_name("uv")
    packages = ["--frozen", "--no-dev", "--format=cyclonedx1.5", f"--output-file={FOLDER / name}.cdx.json"]
    _run(uv, "export", "--quiet", "--preview-features=sbom-export", *packages)
    return _output(python, "-m", "emulator", "archive", FOLDER / TOOLS)


def digests() -> str:
    """Return the SHA-256 of each file, in the format of sha256sum."""
    files = sorted(file for file in FOLDER.iterdir() if file.name != NOTES)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def main(tag: str) -> int:
    """Build a release; return the exit code."""
    try:
        text = notes((ROOT / "CHANGELOG.md").read_text(), version())
        if tag:
            check(tag)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / NOTES).write_text(linked(text, f"{home()}/blob/v{version()}") + "\n")
    pin = build()
    listed = digests()
    (FOLDER / "SHA256SUMS").write_text(listed)
    print(listed, end="")
    # `make up` takes the tools by the pin. It is committed before the tag, because the tag is on what is built here.
    lines = [line for line in PIN.read_text().splitlines() if not line.startswith(("#", "  url:"))]
    if lines != [line for line in pin.splitlines() if not line.startswith("  url:")]:
        print(f"{PIN.relative_to(ROOT)} pins other tools. Write this there, with the address of {TOOLS}:\n{pin}")
        return 1 if tag else 0
    return 0


def _run(*command: str | Path) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


def _output(*command: str | Path) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or [""]))
