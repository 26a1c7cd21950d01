package main

import (
	"context"
	"io"
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// validationPluginName is the name of the plugin in OpenShift, whose code cannot be had as a module (beside
// that of defaultsPluginName, in validation).
const validationPluginName = "security.openshift.io/ValidateSecurityContextConstraints"

// validator refuses a SecurityContextConstraints that contradicts itself. OpenShift's also looks at flex volumes and
// sysctls.
type validator struct {
	*admission.Handler
}

var _ admission.ValidationInterface = &validator{}

func registerValidation(plugins *admission.Plugins) {
	plugins.Register(validationPluginName, func(io.Reader) (admission.Interface, error) {
		return &validator{admission.NewHandler(admission.Create, admission.Update)}, nil
	})
}

func (v *validator) Validate(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	object, ok := constraintsOf(attributes)
	if !ok {
		return nil
	}
	var found securityv1.SecurityContextConstraints
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found); err != nil {
		return admission.NewForbidden(attributes, err)
	}
	if errs := validate(&found); len(errs) > 0 {
		return apierrors.NewInvalid(attributes.GetKind().GroupKind(), found.Name, errs)
	}
	return nil
}

func validate(found *securityv1.SecurityContextConstraints) field.ErrorList {
	var errs field.ErrorList
	refuse := func(path string, value any, why string) {
		errs = append(errs, field.Invalid(field.NewPath(path), value, why))
	}
	if found.Priority != nil && *found.Priority < 0 {
		refuse("priority", *found.Priority, "priority cannot be negative")
	}
	if uid := found.RunAsUser.UID; uid != nil && *uid < 0 {
		refuse("runAsUser.uid", *uid, "uid cannot be negative")
	}
	errs = append(errs, supported("runAsUser", found.RunAsUser.Type, "MustRunAsNonRoot", "MustRunAsRange")...)
	errs = append(errs, supported("seLinuxContext", found.SELinuxContext.Type)...)
	errs = append(errs, supported("fsGroup", found.FSGroup.Type)...)
	errs = append(errs, supported("supplementalGroups", found.SupplementalGroups.Type)...)
	for path, ranges := range map[string][]securityv1.IDRange{
		"fsGroup.ranges": found.FSGroup.Ranges, "supplementalGroups.ranges": found.SupplementalGroups.Ranges,
	} {
		for _, each := range ranges {
			if each.Min < 0 || each.Max < each.Min {
				refuse(path, each, "min cannot be negative or greater than max")
			}
		}
	}
	for path, capabilities := range map[string][]corev1.Capability{
		"defaultAddCapabilities": found.DefaultAddCapabilities, "allowedCapabilities": found.AllowedCapabilities,
	} {
		for _, each := range capabilities {
			if slices.Contains(found.RequiredDropCapabilities, each) {
				refuse(path, each, "capability is listed in "+path+" and requiredDropCapabilities")
			}
		}
	}
	if slices.Contains(found.AllowedCapabilities, securityv1.AllowAllCapabilities) && len(found.RequiredDropCapabilities) > 0 {
		refuse("requiredDropCapabilities", found.RequiredDropCapabilities,
			"required capabilities must be empty when all capabilities are allowed by a wildcard")
	}
	if set(found.DefaultAllowPrivilegeEscalation) && !set(found.AllowPrivilegeEscalation) {
		refuse("defaultAllowPrivilegeEscalation", true, "cannot be true without allowPrivilegeEscalation")
	}
	if slices.Contains(found.Volumes, securityv1.FSTypeNone) && len(found.Volumes) > 1 {
		refuse("volumes", found.Volumes, "if 'none' is specified, no other values are allowed")
	}
	return errs
}

// supported refuses a strategy that is neither of the two that every field has, nor one of its own.
func supported[T ~string](strategy string, found T, own ...T) field.ErrorList {
	known := append([]T{"MustRunAs", "RunAsAny"}, own...)
	if slices.Contains(known, found) {
		return nil
	}
	return field.ErrorList{field.NotSupported(field.NewPath(strategy, "type"), found, known)}
}

func set(flag *bool) bool {
	return flag != nil && *flag
}
