// Package kubernetes takes the place of Pulumi's Go SDK for Kubernetes when the provider is compiled here.
//
// The provider uses the SDK for its components helm.v4.Chart, kustomize.v2.Directory and yaml.v2.* alone. The SDK has a
// type for each kind and version, which costs half of the provider's build; these components are not used here.
package kubernetes

import "reflect"

// UntypedArgs is an object as it stands in YAML.
type UntypedArgs map[string]interface{}

// ElementType makes it a pulumi.Input.
func (UntypedArgs) ElementType() reflect.Type {
	return reflect.TypeOf((*map[string]interface{})(nil)).Elem()
}
