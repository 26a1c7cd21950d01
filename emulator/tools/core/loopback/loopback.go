// Package loopback keeps a process from other machines.
package loopback

import "os"

// Only sends every HTTP request to another host to a proxy that does not exist. Go uses no proxy for loopback addresses.
func Only() {
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		os.Unsetenv(name)
	}
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"} {
		os.Setenv(name, "http://127.0.0.1:1")
	}
}
