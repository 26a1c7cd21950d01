"""The plugin kit: what every emulated provider shares, whatever it provides.

The engine attaches to a running server with `PULUMI_DEBUG_PROVIDERS=<package>:<port>`. A provider is written in plain
values (`provider`): a `Plugin` for its packages, a `Provider` for each configured provider resource, and for each type
`Resources` with check, diff, create, read, update and delete. The kit does the rest: the protocol and its errors
(`server`), connections of any number of engines at once (`connections`), messages to the engine (`host`), progress and
cancellation (`operation`), property values with secrets and unknowns (`wire`), property paths, and differences.

Why it is not the SDK's own servicer. `pulumi.provider.experimental` (pulumi 3.272.0) was tried first, served by
grpc.aio, with a provider of ten lines:

- It has no Handshake and no Attach. The engine tolerates the one, fails without the other, and so cannot attach.
- An unknown value arrives as the text of its signature and cannot be answered: marshalling `Computed` raises, so there
  is no preview of anything that is known only later.
- Diff and Update get no old inputs, Check no autonaming, Cancel no connection: one process, one provider resource.
- Every error becomes UNKNOWN with a Python stack in its message. UNKNOWN tells the engine that the resource may have
  changed, and there is no way to say that it exists but is not ready (`ErrorResourceInitFailed`). A resource that is
  gone is answered with empty maps in place of none.
- It runs in one event loop: ten creates that block for 0.5 s took 5.0 s, here they take 0.5 s.
- Its `PropertyValue` takes 67 ms to decode a definition of 700 kB and 180 ms to encode it; `wire` takes 21 and 11 ms.
  `pulumi.runtime.rpc` takes 52 ms to decode it, and moves secrets up to the map or list that holds them.

Used of the SDK are its generated messages and service (`pulumi.runtime.proto`).
"""
