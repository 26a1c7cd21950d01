"""Build pulumi-mlbatch: the folder `components` of the repository as the package `pulumi_mlbatch.components`.

A wheel with a top-level package `components` could clash with a program's own folder. The build therefore renames the
package in import statements, and in strings that name its modules.
"""

import re
import shutil
import tomllib
from pathlib import Path
from typing import Final

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT: Final = Path(__file__).resolve().parents[1]
NAMED: Final = re.compile(r"""((?:^|\n) *(?:from|import) |["'])components(?=\.[a-z]| import)""")
"""The package in an import statement, or at the start of a string such as `"components.health.node_report"`."""
NEEDED: Final = (
    "pulumi",
    "pulumi-kubernetes",
    "pulumi-random",
    "pydantic",
    "PyYAML",
    "cryptography",
    "bcrypt",
    "Jinja2",
)
CLOUDS: Final = {"azure": "pulumi-azure-native", "openstack": "pulumi-openstack"}
"""The SDKs that only the components of a cloud need, by extra."""


class Build(build_py):
    """Add the components to the package."""

    def run(self) -> None:
        """Copy all files, and rename the package in Python files."""
        package = Path(self.build_lib) / "pulumi_mlbatch"
        shutil.rmtree(package, ignore_errors=True)
        super().run()
        left_out = shutil.ignore_patterns("__pycache__", ".*", "ruff.toml")
        shutil.copytree(ROOT / "components", package / "components", ignore=left_out)
        for file in package.rglob("*.py"):
            file.write_text(NAMED.sub(r"\1pulumi_mlbatch.components", file.read_text()))


project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
bounds = {re.split("[<>=]", each)[0]: each for each in project["dependencies"]}
setup(
    version=project["version"],
    install_requires=[bounds[name] for name in NEEDED],
    extras_require={extra: [bounds[name]] for extra, name in CLOUDS.items()},
    cmdclass={"build_py": Build},
)
