"""The workbench of OpenShift AI: a notebook with the objects that distributed workloads need.

Sources: redhat-na-ssa/hobbyist-guide-to-rhoai, docs/10-demo-distributed_workloads.md and configs/09; the objects that
the dashboard creates: opendatahub-io/odh-dashboard (v2.30), frontend/src/api/k8s.
"""
