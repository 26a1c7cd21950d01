"""How commands begin and end that start a cluster of their own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from emulator.cluster import ClusterError
from emulator.toolchain import ToolchainError

_SHOWN = 40
"""Characters of what somebody has written, in an error about it."""


def ended(command: Callable[[], int]) -> int:
    """Run a command; return its exit code, also where its cluster does not start or somebody interrupts it."""
    try:
        return command()
    except (ClusterError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; its cluster has ended", file=sys.stderr)
        return 130


class Parser(argparse.ArgumentParser):
    """Tells what is wrong with an option in one line, without the usage that argparse prints before it."""

    def error(self, message: str) -> NoReturn:
        """End the process."""
        self.exit(2, f"error: {message}\n")


def whole(variable: str, least: int | None = None, most: int | None = None) -> Callable[[str], int]:
    """Return what reads the whole number of an option. variable: its name in `make`. least, most: both, or neither."""
    bounds = "" if least is None else f" from {least} to {most}"

    def read(text: str) -> int:
        wrong = argparse.ArgumentTypeError(f"{variable}={_short(text)} is none: give a whole number{bounds}")
        try:
            number = int(text)
        except ValueError as error:
            raise wrong from error
        if (least is not None and number < least) or (most is not None and number > most):
            raise wrong
        return number

    return read


def number(variable: str) -> Callable[[str], float]:
    """Return what reads the number of an option. variable: its name in `make`."""

    def read(text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{variable}={_short(text)} is none: give a number") from error

    return read


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
