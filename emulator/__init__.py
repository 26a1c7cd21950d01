"""The local environment: a development tool that the platform program never imports.

It builds the Pulumi command and the Kubernetes binaries from Go modules. It starts and supervises a control plane on
loopback, runs the controllers that it has binaries for, in place of a kubelet, and emulates providers whose plugins
cannot be installed. It needs Linux, because each pod is a process in its own namespaces.
"""
