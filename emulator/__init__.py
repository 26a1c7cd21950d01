"""The local environment: a development tool beside the platform program, which never imports it.

It builds the Pulumi command and the Kubernetes binaries from their Go modules, starts and supervises a control plane on
loopback, plays the kubelet for the controllers that it has binaries for, and serves emulated providers for plugins that
cannot be had. Linux only: pods are processes in namespaces of their own.
"""
