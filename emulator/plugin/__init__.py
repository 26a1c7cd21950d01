"""The plugin kit: the engine's provider protocol in front of the emulated Azure.

The engine attaches to a running server with `PULUMI_DEBUG_PROVIDERS=<package>:<port>`. A provider uses plain values
(`provider`): a `Plugin` for its packages, a `Provider` for each configured provider resource, and for each type
`Resources` with check, diff, create, read, update and delete. The kit does the rest: protocol and errors (`server`),
connections of any number of engines (`connections`), status messages and cancellation (`operation`), property values
with unknowns (`wire`), property paths, and differences.

The SDK's own servicer, `pulumi.provider.experimental` (pulumi 3.272.0), is not sufficient:

- It has no Attach, so the engine cannot attach to it.
- It cannot return an unknown value: marshalling `Computed` raises.
- It cannot report that a resource exists but is not ready (`ErrorResourceInitFailed`). Every error becomes UNKNOWN,
  which means for the engine that the resource may have changed.
- It does not pass old inputs to Diff, and hides the connection of a call, so one process serves one provider resource.
- It runs in one event loop. Ten creates that block for 0.5 s take 5.0 s; here they take 0.5 s.

The kit uses the SDK's generated messages and service (`pulumi.runtime.proto`).
"""
