"""Emulates a VM of the local OpenStack, which has no hypervisor, with a real SSH server configured by its user data.

It has the host key, the user and the authorized keys of the user data. It simulates the first boot: the marker goes
through the steps, and reports that it installed no software. The VM's cluster is the local cluster. Its kubeconfig has
kind's form, and connections to the API server on the VM's loopback reach the local API server.
"""
