"""`mlbatch review`: show what a change does to each stack."""

import os
from collections.abc import Sequence
from pathlib import Path

from cli.ending import FINE, FOUND, failed, interrupted, written
from review.environment import NoEnvironmentError
from review.markdown import render
from review.revisions import Checkout, ReviewError, cleaned_up, review, revisions
from runner.files import UMASK


def run(base: str, stacks: Sequence[str], file: Path | None) -> int:
    """Print or write the review. Return the exit code.

    It is 1 if a stack cannot be previewed (the review gives the reason), and 2 if there is no review.
    """
    os.umask(UMASK)
    try:
        with cleaned_up(), revisions(Checkout.of_this_file(), base) as (before, after):
            found = review(before, after, stacks)
    except (NoEnvironmentError, ReviewError) as error:
        return failed(error)
    except KeyboardInterrupt:
        return interrupted("no files were left behind")
    found_failures = FOUND if any(stack.failed for stack in found.stacks) else FINE
    return written("review", render(found), file) or found_failures
