"""A real OpenStack on this machine, as CSC's cPouta shows itself to one of its projects.

Keystone, Placement, Glance, Neutron, Cinder and Nova as released, unprivileged, on loopback: a process for each, with
SQLite and messaging inside the process. What they rule on is real: policies, quotas, scheduling, names, addresses,
states. What lies beneath them is not there: no guest boots, no packet flows, a volume has no bytes.

This package is imported in two Python environments, the project's and (`inside`) OpenStack's own: it imports nothing.
"""
