// Package v4 has the options of helm.v4.Chart.
package v4

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

// RepositoryOpts is where a chart comes from.
type RepositoryOpts struct {
	CaFile   pulumi.Asset `pulumi:"caFile"`
	CertFile pulumi.Asset `pulumi:"certFile"`
	KeyFile  pulumi.Asset `pulumi:"keyFile"`
	Password *string      `pulumi:"password"`
	Repo     *string      `pulumi:"repo"`
	Username *string      `pulumi:"username"`
}

// RepositoryOptsInput resolves to RepositoryOpts.
type RepositoryOptsInput interface {
	pulumi.Input
}

// PostRenderer is a command that changes the rendered chart.
type PostRenderer struct {
	Args    []string `pulumi:"args"`
	Command string   `pulumi:"command"`
}

// PostRendererInput resolves to PostRenderer.
type PostRendererInput interface {
	pulumi.Input
}
