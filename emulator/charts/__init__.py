"""Helm charts on the local cluster: available charts, their contents, and what is left out locally.

A chart is an archive `<name>-<version>.tgz` in the mirror. Helm itself installs it. There are two sorts:

- Rendered: upstream's chart, packed from its Go module. Its objects are upstream's. Its controllers are simulated (see
  `emulator.cluster.pod`), because this environment has no program for their images.
- Stubs: for charts that no package registry has. `stubs/<name>/<version>/values.schema.json` lists the values of
  upstream's chart. The folder `stubs/<name>` has the custom resource definitions and pods that the rest of the
  emulation needs, with upstream's types if the program declares such a resource.

To add a version of a stub, copy the folder of another version, run `python -m emulator.charts.schema CHART` on
upstream's chart for the schema, and compare defaults, kinds and pods with upstream's.
"""
