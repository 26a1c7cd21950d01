// Command kubernetes serves Pulumi's official Kubernetes provider as the plugin pulumi-resource-kubernetes, for clusters
// on this machine alone.
package main

import (
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

	"mlbatch/tools/core/loopback"
)

// version is that of the release whose commit is pinned.
const version = "4.25.0"

func main() {
	loopback.Only()
	// The schema serves code generators, and the inputs of `pulumi import`; the mapping serves converters.
	provider.Serve("kubernetes", version, []byte("{}"), []byte("{}"))
}
