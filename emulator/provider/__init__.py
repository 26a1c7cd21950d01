"""The emulated Pulumi Kubernetes provider, which serves where the official plugin cannot be had.

`python -m emulator.provider --port PORT --api-server URL` serves the engine's provider protocol on loopback, for that
API server and no other; the engine attaches to it with `PULUMI_DEBUG_PROVIDERS=kubernetes:PORT`. One process serves any
number of engine runs and provider resources.
What it does follows the official provider in server-side-apply mode (https://github.com/pulumi/pulumi-kubernetes):
the shape of the state, autonaming, the decision between update and replace, plain create and server-side-applied
update, dry runs at preview, waiting for readiness, foreground deletion, refresh and import, Patch resources.

What it does not do. Each of these is an error that names what was asked for, never a silent success:

- Helm as a component (`helm.sh/v4:Chart`), Kustomize and YAML components (`yaml/v2`, `kustomize/v2`), and every
  function (`invoke`), method (`call`), `list` and package parameterization.
- `helm.sh/v3:Release` on another cluster than the local one (see `emulator.charts`), with a chart that cannot be had
  locally, or with `valueYamlFiles`, `postrender`, `verify` and other inputs than those that `release` lists.
- Client-side apply (`enableServerSideApply: false`), rendering YAML to a directory (`renderYamlToDirectory`), going on
  without the cluster (`skipUpdateUnreachable`), the annotation `pulumi.com/replaceUnready`.
- A kubeconfig that is not given: a server cannot know the environment of the engine. Relative paths, for the same
  reason.

Known differences, by design:

- Inputs are validated by the API server (dry run at preview, the real call at update), not against its OpenAPI schema.
- Values of built-in kinds are brought to canonical form as far as quantities, Secrets and CustomResourceDefinitions
  go; the official provider also drops fields that a built-in type does not have.
- `kubeClientSettings` limits nothing but the timeout: there is no client-side throttling.
- There is no warning about versions that Kubernetes has removed: the API server refuses them.
- Environment variables such as `PULUMI_K8S_*` are those of this process, hence ignored; use the provider's inputs.
- A created CustomResourceDefinition is waited for until it is established.
- A release's chart hooks do not run, and webhooks and aggregated APIs of charts are left out; the engine is told which.
- Values that a chart does not know are warnings; Helm ignores them. What its templates or its schema refuse is an error
  at preview already.
- The state has no `metadata.managedFields`; nothing reads them there.
"""

from __future__ import annotations

VERSION = "4.34.2"
"""The release of pulumi-kubernetes whose plugin this emulates; the engine compares it with the SDK's request."""
