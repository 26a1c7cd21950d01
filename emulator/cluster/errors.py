"""Why the local kubelet cannot start a container; `reason` is what its status says while it waits."""

from __future__ import annotations


class MissingError(Exception):
    """The pod needs an object, or a key of one, that is not there (yet)."""

    reason = "ContainerCreating"


class UnsupportedError(Exception):
    """The pod asks for what the local kubelet does not do."""

    reason = "CreateContainerConfigError"


class UnknownImageError(Exception):
    """The kubelet has nothing to run for an image; the message lists what it can run."""

    reason = "ErrImagePull"
