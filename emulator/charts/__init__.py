"""Helm charts on the local cluster: which can be had, what they install, and what is left out of them here.

A chart is an archive `<name>-<version>.tgz` in the mirror and is always installed by Helm itself. There are two sorts:

- Rendered: upstream's chart, packed from its Go module. Its objects are upstream's, its controllers are played (see
  `emulator.cluster.pod`), since no program here stands for their images.
- Recorded: a chart that cannot be had here. `recorded/<name>-<version>.yaml` holds facts read from upstream: which
  values there are and of which type, the custom resources and the workloads; an archive is made of these.
"""
