"""A real OpenStack on this machine, set up like a project of CSC's cPouta.

Keystone, Placement, Glance, Neutron, Cinder and Nova are the released programs. Each runs unprivileged on loopback in
one process, with SQLite and in-process messaging. Policies, quotas, scheduling, names, addresses and states are real.
Guests do not boot, networks carry no packets, and volumes store no bytes.

Two Python environments import this package, the project's and (`inside`) OpenStack's, so it has no imports.
"""
