"""What makes the local cluster an OpenShift, in addition to its API server (`emulator/tools/kubernetes-1.34`).

It has the definitions, SecurityContextConstraints and roles of every OpenShift, its version, and the users and groups
of each namespace. It does not have the aggregated APIs (projects, images, builds, users, templates), the operators of
its platform, its console and its router.
"""
