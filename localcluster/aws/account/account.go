// Package account runs a fake AWS account in this process, with the network, role, queue and images of an EKS cluster
// (E-63). It is the endpoint of package ec2test with the machine's clock. Programs reach it through the real SDK, with
// the environment that [Account.Env] returns.
package account

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

const (
	// ID is the account's number.
	ID = ec2test.Account
	// Region is the account's region.
	Region = "us-east-1"
	// Role is the role of nodes.
	Role = "KarpenterNodeRole"
	// readHeaders bounds the head of a request; answers of queues may take longer than any bound.
	readHeaders = 10 * time.Second
)

// User is an access key, so that calls can be told apart by caller.
type User string

// Users of an account. The endpoint checks Joiner's requests against Joiner's policies (E-58).
const (
	Joiner   User = ec2test.AccessKey
	Kubelets User = "AKIAKUBELETLOCAL0001"
	You      User = "AKIAYOURSLOCAL000001"
)

func (u User) secret() string { return "worth-nothing-" + strings.ToLower(string(u)) }

// Options configure the account.
type Options struct {
	// Cluster is the name of the account's cluster.
	Cluster string
	// Boot and Shut are how long instances take to start and to end; 0 means the defaults of ec2test.
	Boot, Shut time.Duration
}

// Account is a running AWS account. It is safe for concurrent use.
type Account struct {
	*ec2test.Server
	Cluster string // its name
	Queue   string // name of the interruption queue
	Subnets []ec2test.Subnet
	Group   ec2test.SecurityGroup

	http   *http.Server
	served chan error

	mu      sync.Mutex
	unknown []string
	version string // minor, as in 1.36
}

// Start starts an account with a network in three zones, the role of nodes and the queue. Adopt adds the cluster and
// its images. The caller must call Stop.
func Start(o Options) (*Account, error) {
	if o.Cluster == "" {
		return nil, errors.New("account: Options.Cluster is empty: a name is needed")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	a := &Account{Cluster: o.Cluster, Queue: o.Cluster + "-interruptions", served: make(chan error, 1)}
	keys := map[string]string{}
	for _, user := range []User{Joiner, Kubelets, You} {
		keys[string(user)] = user.secret()
	}
	a.Server, err = ec2test.New(ec2test.Options{
		Region: Region, Now: time.Now, URL: "http://" + listener.Addr().String(), Keys: keys, Boot: o.Boot,
		Shut: o.Shut, Unknown: a.note, Forbidden: a.note,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("account: %w", err), listener.Close())
	}
	a.Subnets, a.Group = a.AddNetwork(a.Cluster, Region+"a", Region+"b", Region+"c")
	a.AddRole(Role)
	a.AddQueue(a.Queue)
	a.http = &http.Server{Handler: a.Server, ReadHeaderTimeout: readHeaders}
	go func() { a.served <- a.http.Serve(listener) }()
	return a, nil
}

// Stop stops the account; calls under way are cut off.
func (a *Account) Stop() error {
	if err := a.http.Close(); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	if err := <-a.served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("account: %w", err)
	}
	return nil
}

// Adopt adds a Kubernetes cluster to the account. EKS then returns its endpoint, CA and service addresses, and there
// are images for its version.
func (a *Account) Adopt(ctx context.Context, cluster *rest.Config) error {
	config := rest.CopyConfig(cluster)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("account: asking the API server for its version: %w", err)
	}
	services, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("account: asking the API server for the addresses of services: %w", err)
	}
	a.mu.Lock()
	a.version = version.Major + "." + strings.TrimRight(version.Minor, "+")
	a.mu.Unlock()
	a.AddCluster(ec2test.Cluster{
		Name: a.Cluster, Version: a.Version(), Endpoint: config.Host, CA: encode(config.CAData),
		CIDR: services.Spec.CIDRs[0],
	})
	a.Release(time.Now().AddDate(0, 0, -30))
	return nil
}

// Version returns the cluster's version, major and minor.
func (a *Account) Version() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.version
}

// Env returns the environment variables that a program needs to use the account as user.
func (a *Account) Env(user User) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + a.URL(), "AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region, "AWS_ACCESS_KEY_ID=" +
			string(user), "AWS_SECRET_ACCESS_KEY=" + user.secret(),
		"AWS_EC2_METADATA_DISABLED=true", // the program does not run on an instance
	}
}

// Config is Env as a configuration of the SDK.
func (a *Account) Config(user User) aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(a.URL()), Credentials: Static(string(user), user.secret()),
	}
}

// Static returns credentials that do not change.
func Static(id, secret string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, Source: "account"}, nil
	})
}

// note records an unexpected request.
func (a *Account) note(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unknown = append(a.unknown, text)
}

// Unknown returns unexpected requests: those with an action or a parameter that the endpoint does not know, and those
// that Joiner's policies do not allow.
func (a *Account) Unknown() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.unknown)
}

// CallsOf returns how often a user asked for each action, by "service:Action".
func (a *Account) CallsOf(user User) map[string]int {
	counts := map[string]int{}
	for _, call := range a.Calls() {
		if call.Key == string(user) {
			counts[call.Service+":"+call.Action]++
		}
	}
	return counts
}
