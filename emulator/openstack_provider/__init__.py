"""The provider plugin `openstack`, for where the official one cannot be had: the resources of any OpenStack.

It emulates no OpenStack: what is refused, the services themselves refuse. It acts on whatever OpenStack the environment
or a provider resource names; the local environment starts it so that it takes none but its own (`plugin`).

What it follows:

- `schema.yaml` has the facts of the official schema, that of pulumi-openstack 5.5.3: which properties there are, which
  of them replace a resource, defaults, secrets (`schema`, `inputs`, `planning`).
- What each type of resource does in which order, what it waits for, for how long, and at which point a creation that
  fails is kept, is that of terraform-provider-openstack v3.4.0 (`kinds`, `functions`).
- Requests go through openstacksdk, which signs in, finds the services and speaks the microversion that upstream asks
  for (`cloud`). The properties that it does not understand of a provider resource are refused.

What it does not serve is an error that names it: other types and functions than those in `schema.yaml`.

What is as in the official provider, and surprises:

- A changed image rebuilds a server in place, and wipes its root disk; `userData` and `keyPair` replace it.
- What somebody changes by hand of the `securityGroupIds` and `fixedIps` of a port is not seen.
- What was created and not yet recorded when the engine was killed is an orphan: the next update creates it anew. What
  is recorded at a failure: a server and a volume from the moment that they have an ID, all others when they are ready.
- A server that goes into status ERROR is recorded as it was planned, and the next update leaves it as it is. After a
  refresh, which finds it without networks, the next update replaces it.
- The quotas of compute may not be asked for by ordinary users in `getLimitsV2`; `getQuotaSetV2` answers them.

Known differences, by design:

- A status is asked for after 0.3 s and then less and less often, up to 3 s; upstream begins with 3 s or less.
- The error of a server that went into status ERROR has Nova's fault; upstream has the status alone.
- It keeps what it has begun or created until an engine shows that it knows it (`journal`), so that the local
  environment can hand back to a stack's state what a killed engine, or an answer that got lost, has left (`recovery`).
- The deletion of a port that is not ACTIVE is waited for; upstream fails on it.
"""
