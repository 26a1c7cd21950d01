"""Start and end of commands that start their own cluster."""

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from emulator.cluster import ClusterError
from emulator.toolchain import ToolchainError

_SHOWN = 40
"""Longest part of an invalid value, in characters, in its error."""


def ended(command: Callable[[], int]) -> int:
    """Run a command. Return its exit code, also if its cluster does not start or a user interrupts it."""
    try:
        return command()
    except (ClusterError, ToolchainError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; its cluster has ended", file=sys.stderr)
        return 130


class Parser(argparse.ArgumentParser):
    """Reports an invalid option in one line, without the usage that argparse prints before it."""

    def error(self, message: str) -> NoReturn:
        """End the process."""
        self.exit(2, f"error: {message}\n")


def whole(variable: str, least: int | None = None, most: int | None = None) -> Callable[[str], int]:
    """Return the parser of a whole number. variable: the option's name in `make`. least, most: both, or neither."""
    bounds = "" if least is None else f" from {least} to {most}"

    def read(text: str) -> int:
        wrong = argparse.ArgumentTypeError(f"{variable}={_short(text)} is invalid: give a whole number{bounds}")
        try:
            number = int(text)
        except ValueError as error:
            raise wrong from error
        if (least is not None and number < least) or (most is not None and number > most):
            raise wrong
        return number

    return read


def number(variable: str) -> Callable[[str], float]:
    """Return the parser of an option with a number. variable: its name in `make`."""

    def read(text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{variable}={_short(text)} is invalid: give a number") from error

    return read


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
