"""Resources in an OpenStack project, and on the VM in it."""
