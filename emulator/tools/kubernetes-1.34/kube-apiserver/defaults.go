package main

import (
	"context"
	"io"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccdefaults"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

// defaultsPluginName is the name of the plugin in OpenShift, whose code cannot be had as a module
// (openshift/kubernetes, openshift-kube-apiserver/admission/customresourcevalidation/securitycontextconstraints).
const defaultsPluginName = "security.openshift.io/DefaultSecurityContextConstraints"

// defaults fills in what a SecurityContextConstraints leaves out. Its definition requires fields that nobody writes.
type defaults struct {
	*admission.Handler
}

var _ admission.MutationInterface = &defaults{}

func registerDefaults(plugins *admission.Plugins) {
	plugins.Register(defaultsPluginName, func(io.Reader) (admission.Interface, error) {
		return &defaults{admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

func (d *defaults) Admit(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	object, ok := constraintsOf(attributes)
	if !ok {
		return nil
	}
	var found securityv1.SecurityContextConstraints
	converter := runtime.DefaultUnstructuredConverter
	if err := converter.FromUnstructured(object.Object, &found); err != nil {
		return admission.NewForbidden(attributes, err)
	}
	sccdefaults.SetDefaults_SCC(&found)
	filled, err := converter.ToUnstructured(&found)
	if err != nil {
		return admission.NewForbidden(attributes, err)
	}
	filled["metadata"] = object.Object["metadata"]
	object.Object = filled
	return nil
}

// constraintsOf returns the SecurityContextConstraints that a request is about, if it is about one.
func constraintsOf(attributes admission.Attributes) (*unstructured.Unstructured, bool) {
	if attributes.GetResource().GroupResource() != securityv1.Resource("securitycontextconstraints") {
		return nil, false
	}
	object, ok := attributes.GetObject().(*unstructured.Unstructured)
	return object, ok && attributes.GetSubresource() == ""
}
