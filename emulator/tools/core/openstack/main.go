// Command openstack serves terraform-provider-openstack as the plugin pulumi-resource-openstack.
//
// It serves the resource types that the program uses, and only an OpenStack on this machine.
package main

import (
	"context"
	"net"
	"net/url"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfbridge"
	shimv2 "github.com/pulumi/pulumi-terraform-bridge/v3/pkg/tfshim/sdk-v2"
	"github.com/terraform-provider-openstack/terraform-provider-openstack/v3/openstack"

	"mlbatch/tools/core/loopback"
)

// version is that of the Python SDK: the engine warns of an older one.
const version = "5.5.3"

// types maps a type of Terraform, without its prefix, to the module and the name that the Python SDK has for it.
var types = map[string][2]string{
	"compute_keypair_v2":                 {"compute", "Keypair"},
	"compute_instance_v2":                {"compute", "Instance"},
	"compute_volume_attach_v2":           {"compute", "VolumeAttach"},
	"networking_port_v2":                 {"networking", "Port"},
	"networking_secgroup_v2":             {"networking", "SecGroup"},
	"networking_secgroup_rule_v2":        {"networking", "SecGroupRule"},
	"networking_floatingip_v2":           {"networking", "FloatingIp"},
	"networking_floatingip_associate_v2": {"networking", "FloatingIpAssociate"},
	"blockstorage_volume_v3":             {"blockstorage", "Volume"},
}

func main() {
	loopback.Only()
	info := tfbridge.ProviderInfo{
		P:         shimv2.NewProvider(local(openstack.Provider())),
		Name:      "openstack",
		Version:   version,
		Resources: map[string]*tfbridge.ResourceInfo{},
	}
	for name, sdk := range types {
		token := tfbridge.MakeResource("openstack", sdk[0], sdk[1])
		info.Resources["openstack_"+name] = &tfbridge.ResourceInfo{Tok: token}
	}
	info.SetAutonaming(255, "-")
	tfbridge.Main("openstack", version, info, nil)
}

// local refuses an authUrl that is not on this machine, with a clear message. loopback keeps every other request here,
// such as those to a cloud of clouds.yaml.
func local(provider *schema.Provider) *schema.Provider {
	configure := provider.ConfigureContextFunc
	provider.ConfigureContextFunc = func(ctx context.Context, data *schema.ResourceData) (any, diag.Diagnostics) {
		address := data.Get("auth_url").(string)
		if found, err := url.Parse(address); address != "" && (err != nil || !isLoopback(found.Hostname())) {
			return nil, diag.Errorf("authUrl %s is not on this machine, and the local environment accepts no other "+
				"OpenStack than its own. Remove the setting: OS_AUTH_URL names the local OpenStack", address)
		}
		return configure(ctx, data)
	}
	return provider
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
