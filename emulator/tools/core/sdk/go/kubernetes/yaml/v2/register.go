// Package v2 registers the objects of a component.
package v2

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// RegisterResource registers an object without a Go type of its kind.
func RegisterResource(ctx *pulumi.Context, apiVersion, kind, name string, props pulumi.Input,
	opts ...pulumi.ResourceOption) (pulumi.CustomResource, error) {
	group := apiVersion
	if !strings.Contains(group, "/") {
		group = "core/" + group
	}
	var res pulumi.CustomResourceState
	if err := ctx.RegisterResource(fmt.Sprintf("kubernetes:%s:%s", group, kind), name, props, &res, opts...); err != nil {
		return nil, err
	}
	return &res, nil
}
