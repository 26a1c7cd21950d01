"""What makes the local cluster an OpenShift, beside its API server (`emulator/tools/kubernetes-1.34`).

Its definitions, the SecurityContextConstraints and roles that every OpenShift has, what it says of itself, and the
users and groups that it allots to each namespace. What else runs on an OpenShift is not there: aggregated APIs
(projects, images, builds, users, templates), the operators of its platform, its console, its router.
"""
