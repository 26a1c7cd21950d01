"""The workbench of OpenShift AI: a notebook with what distributed workloads need beside it.

Sources: redhat-na-ssa/hobbyist-guide-to-rhoai, docs/10-demo-distributed_workloads.md and configs/09; the objects that
the dashboard makes: opendatahub-io/odh-dashboard (v2.30), frontend/src/api/k8s.
"""
