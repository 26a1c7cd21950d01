// Command kubernetes serves Pulumi's official Kubernetes provider as the plugin pulumi-resource-kubernetes, for clusters
// on this machine alone.
package main

import (
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"

	"mlbatch/tools/core/loopback"
)

// version is that of the release before the pinned commit, with the commit.
const version = "4.24.0+f47bc2d6f199"

func main() {
	loopback.Only()
	// The schema and the Terraform mapping serve code generators and chart functions, which the program does not call.
	provider.Serve("kubernetes", version, []byte("{}"), []byte("{}"))
}
