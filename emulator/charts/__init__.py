"""Helm charts on the local cluster: which can be had, what they install, and what is left out of them here.

A chart is an archive `<name>-<version>.tgz` in the mirror and is always installed by Helm itself. There are two sorts:

- Rendered: upstream's chart, packed from its Go module. Its objects are upstream's, its controllers are simulated (see
  `emulator.cluster.pod`), since no program here stands for their images.
- Stubs: for charts that no package registry serves. `stubs/<name>/<version>/values.schema.json` says which values
  upstream's chart knows. Beside it stand the custom resource definitions and pods that the rest of the emulation needs,
  typed as upstream's where the program declares such a resource.

To add a version of a stub, copy the folder of another, run `python -m emulator.charts.schema CHART` on upstream's chart
for its schema, and hold defaults, kinds and pods to upstream's.
"""
