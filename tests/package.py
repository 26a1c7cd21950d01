"""The package pulumi-mlbatch, built and installed for a test."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "package"


def built(folder: Path) -> Path:
    """Return the wheel, built from the checkout with the packages of this environment."""
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, ROOT / "package"], check=True)
    (wheel,) = folder.glob("pulumi_mlbatch-*.whl")
    return wheel


def installed(wheel: Path, folder: Path) -> Path:
    """Return a folder for PYTHONPATH that has the package and not the checkout. Its dependencies are those of this
    environment.
    """
    target = folder / "site-packages"
    options = ["--quiet", "--no-deps", "--no-index", "--target", target]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, wheel], check=True)
    return target
