package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Names of the identities that every cluster has; see Cluster.RESTConfig.
const (
	adminIdentity             = "admin"
	controllerManagerIdentity = "controller-manager"
	schedulerIdentity         = "scheduler"
	kwokIdentity              = "kwok"

	mastersGroup        = "system:masters"
	kubeconfigExtension = ".kubeconfig"
	// contextName names cluster and context in every kubeconfig.
	contextName = "local"
)

// Identity is a user of the API server, by client certificate.
type Identity struct {
	// Name names the kubeconfig: lower-case letters, digits, '-' and '.'.
	Name string
	// User is the user name that the server sees. Empty: Name.
	User string
	// Groups are the groups that the server sees.
	Groups []string
	// Server is another URL to reach the API server by, for example that of a
	// proxy. Empty: the API server's own.
	Server string
}

func builtinIdentities() []Identity {
	return []Identity{
		{Name: adminIdentity, Groups: []string{mastersGroup}},
		{Name: controllerManagerIdentity, User: "system:kube-controller-manager"},
		{Name: schedulerIdentity, User: "system:kube-scheduler"},
		{Name: kwokIdentity, Groups: []string{mastersGroup}},
	}
}

// validate refuses a name that cannot be a file's, or a URL that is not one.
func (i Identity) validate() error {
	if !regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`).MatchString(i.Name) {
		return fmt.Errorf(
			"Identity.Name is %q: allowed are 1 to 63 lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
			i.Name)
	}
	if i.Server == "" {
		return nil
	}
	server, err := url.Parse(i.Server)
	if err != nil || server.Host == "" || (server.Scheme != "https" && server.Scheme != "http") {
		return fmt.Errorf("Identity.Server is %q: it must be an http or https URL", i.Server)
	}
	return nil
}

// Kubeconfig mints a user with the given name and groups and returns the path
// of its kubeconfig. A user without groups may do what RBAC grants to its name.
// Calling it again replaces the file. The names admin, controller-manager,
// scheduler and kwok are taken.
func (c *Cluster) Kubeconfig(name string, groups ...string) (string, error) {
	return c.KubeconfigFor(Identity{Name: name, Groups: groups})
}

// KubeconfigFor is Kubeconfig for an identity whose user name or server URL
// differ from the default.
func (c *Cluster) KubeconfigFor(identity Identity) (string, error) {
	if slices.ContainsFunc(builtinIdentities(), func(b Identity) bool { return b.Name == identity.Name }) {
		return "", fmt.Errorf("Identity.Name is %q: this identity belongs to the cluster itself", identity.Name)
	}
	return c.setup.writeKubeconfig(identity)
}

// AdminKubeconfig returns the path of the kubeconfig of a member of
// system:masters.
func (c *Cluster) AdminKubeconfig() string { return c.setup.kubeconfigPath(adminIdentity) }

// RESTConfig returns a client configuration for an identity: admin,
// controller-manager, scheduler, kwok, or a name given to Kubeconfig. It has no
// client-side rate limit.
func (c *Cluster) RESTConfig(identity string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.setup.kubeconfigPath(identity))
	if err != nil {
		return nil, fmt.Errorf("identity %q: %w: call Kubeconfig first", identity, err)
	}
	config.QPS = -1
	return config, nil
}

func (s *setup) kubeconfigPath(identity string) string {
	return filepath.Join(s.options.Dir, kubeconfigDir, identity+kubeconfigExtension)
}

// writeKubeconfig issues a certificate and writes the kubeconfig.
func (s *setup) writeKubeconfig(identity Identity) (string, error) {
	if err := identity.validate(); err != nil {
		return "", err
	}
	user, server := identity.User, identity.Server
	if user == "" {
		user = identity.Name
	}
	if server == "" {
		server = s.ports.url(apiServerPort, "")
	}
	pair, err := s.pki.users.issue(subject{name: user, groups: identity.Groups, client: true})
	if err != nil {
		return "", err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{Server: server}
	if strings.HasPrefix(server, "https:") {
		config.Clusters[contextName].CertificateAuthorityData = s.pki.users.pem
	}
	config.AuthInfos[identity.Name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: identity.Name}
	config.CurrentContext = contextName
	path := s.kubeconfigPath(identity.Name)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", identity.Name, err)
	}
	return path, nil
}

// writeBuiltinKubeconfigs writes the kubeconfigs of the cluster's own
// identities, and points those that an earlier run minted to where the API
// server is now. previous is its URL in that run, or empty.
func (s *setup) writeBuiltinKubeconfigs(previous string) error {
	for _, identity := range builtinIdentities() {
		if _, err := s.writeKubeconfig(identity); err != nil {
			return err
		}
	}
	current := s.ports.url(apiServerPort, "")
	if previous == "" || previous == current {
		return nil
	}
	dir := filepath.Join(s.options.Dir, kubeconfigDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing the kubeconfigs: %w", err)
	}
	var failed []error
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), kubeconfigExtension) {
			failed = append(failed, moveServer(filepath.Join(dir, entry.Name()), previous, current))
		}
	}
	return errors.Join(failed...)
}

// moveServer replaces one server URL by another in a kubeconfig.
func moveServer(path, from, to string) error {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return fmt.Errorf("reading kubeconfig %s: %w", path, err)
	}
	moved := false
	for _, cluster := range config.Clusters {
		if cluster.Server == from {
			cluster.Server = to
			moved = true
		}
	}
	if !moved {
		return nil
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("rewriting kubeconfig %s: %w", path, err)
	}
	return nil
}
