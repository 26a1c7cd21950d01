"""The layers of the platform function: each turns settings into components, in one module a layer."""
