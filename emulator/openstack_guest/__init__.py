"""What stands for a VM of the local OpenStack, which has no hypervisor: a real SSH server, as its user data says.

It has the host key, the user and that user's key of the user data, and plays the first boot: the marker goes through
the steps, and says that nothing was installed. The VM's cluster is the local one: its kubeconfig is handed out as kind
writes it, and connections to its API server on the VM's loopback end there.
"""
