package main

import (
	"io"
	"sync"

	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccadmission"
	securityclient "github.com/openshift/client-go/security/clientset/versioned"
	securityinformers "github.com/openshift/client-go/security/informers/externalversions"
	securityinformersv1 "github.com/openshift/client-go/security/informers/externalversions/security/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// constraint is OpenShift's plugin for pods, handed the SecurityContextConstraints that it judges by.
type constraint struct {
	plugin
	informer func(kubernetes.Interface) securityinformersv1.SecurityContextConstraintsInformer
}

type plugin interface {
	admission.MutationInterface
	admission.ValidationInterface
	initializer.WantsAuthorizer
	initializer.WantsExternalKubeInformerFactory
	sccadmission.WantsSecurityInformer
}

var _ initializer.WantsExternalKubeClientSet = &constraint{}

// registerConstraint registers the plugin. The servers that make up the API server have an instance each; all of them
// look at one copy of the SecurityContextConstraints.
func registerConstraint(plugins *admission.Plugins) {
	var once sync.Once
	var shared securityinformersv1.SecurityContextConstraintsInformer
	informer := func(client kubernetes.Interface) securityinformersv1.SecurityContextConstraintsInformer {
		once.Do(func() { shared = newInformer(client) })
		return shared
	}
	plugins.Register(sccadmission.PluginName, func(io.Reader) (admission.Interface, error) {
		return &constraint{plugin: sccadmission.NewConstraint(), informer: informer}, nil
	})
}

func (c *constraint) SetExternalKubeClientSet(client kubernetes.Interface) {
	c.SetSecurityInformers(c.informer(client))
}

// newInformer follows the SecurityContextConstraints through the API server's own connection to itself. Until their
// definition is there the plugin refuses every pod, as OpenShift does.
func newInformer(client kubernetes.Interface) securityinformersv1.SecurityContextConstraintsInformer {
	own := client.CoreV1().RESTClient().(*rest.RESTClient)
	server := own.Get().URL()
	server.Path = ""
	security, err := securityclient.NewForConfigAndClient(&rest.Config{Host: server.String()}, own.Client)
	utilruntime.Must(err)
	factory := securityinformers.NewSharedInformerFactory(security, 0)
	informer := factory.Security().V1().SecurityContextConstraints()
	go informer.Informer().Run(wait.NeverStop)
	return informer
}
