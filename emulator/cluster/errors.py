"""Reasons why the local kubelet cannot start a container; `reason` goes into the container's status."""


class MissingError(Exception):
    """The pod needs an object, or a key in one, that does not exist (yet)."""

    reason = "ContainerCreating"


class UnsupportedError(Exception):
    """The pod needs a feature that the local kubelet does not support."""

    reason = "CreateContainerConfigError"


class UnknownImageError(Exception):
    """The kubelet has no program for an image."""

    reason = "ErrImagePull"
