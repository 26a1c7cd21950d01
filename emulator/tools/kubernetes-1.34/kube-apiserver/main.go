// The API server of the local OpenShift: Kubernetes' own, with the admission plugins that OpenShift adds to it for
// SecurityContextConstraints.
//
// OpenShift's API server is built from a fork of Kubernetes that cannot be had as a module; its plugin for pods can,
// and decides here as it does there. The command is that of k8s.io/kubernetes/cmd/kube-apiserver/app.
package main

import (
	"os"
	"slices"
	_ "time/tzdata" // for time zones of CronJobs

	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccadmission"
	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of its clients
	_ "k8s.io/component-base/metrics/prometheus/version"  // metric of its version
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
	"k8s.io/kubernetes/plugin/pkg/admission/gc"
	"k8s.io/kubernetes/plugin/pkg/admission/podnodeselector"
	"k8s.io/kubernetes/plugin/pkg/admission/podtolerationrestriction"
)

// onByDefault are the plugins of Kubernetes that OpenShift switches on and Kubernetes does not
// (openshift/kubernetes, openshift-kube-apiserver/admission/admissionenablement/register.go). NodeRestriction is
// missing: the local kubelet gives its node the role of the control plane by itself, which that plugin would refuse.
var onByDefault = []string{gc.PluginName, podnodeselector.PluginName, podtolerationrestriction.PluginName}

func main() {
	os.Exit(cli.Run(command()))
}

func command() *cobra.Command {
	serverOptions := options.NewServerRunOptions()
	addPlugins(serverOptions.Admission)
	ctx := genericapiserver.SetupSignalContext()
	cmd := &cobra.Command{
		Use:          "kube-apiserver",
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			rest.SetDefaultWarningHandler(rest.NoWarnings{}) // of its own requests to itself
			return serverOptions.GenericServerRunOptions.ComponentGlobalsRegistry.Set()
		},
		RunE: func(*cobra.Command, []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(serverOptions.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			completed, err := serverOptions.Complete(ctx)
			if err != nil {
				return err
			}
			if errs := completed.Validate(); len(errs) != 0 {
				return utilerrors.NewAggregate(errs)
			}
			return app.Run(ctx, completed)
		},
	}
	cmd.SetContext(ctx)
	flags := serverOptions.Flags()
	verflag.AddFlags(flags.FlagSet("global"))
	globalflag.AddGlobalFlags(flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	return cmd
}

// addPlugins puts OpenShift's plugins where OpenShift has them: before the webhooks that change objects.
func addPlugins(admission *kubeoptions.AdmissionOptions) {
	generic := admission.GenericAdmission
	registerConstraint(generic.Plugins)
	registerDefaults(generic.Plugins)
	registerValidation(generic.Plugins)
	order := slices.Clone(generic.RecommendedPluginOrder)
	place := slices.Index(order, mutatingwebhook.PluginName)
	added := []string{sccadmission.PluginName, defaultsPluginName, validationPluginName}
	generic.RecommendedPluginOrder = slices.Insert(order, place, added...)
	generic.DefaultOffPlugins.Delete(onByDefault...)
}
