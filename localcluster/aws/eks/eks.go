// Package eks runs a local cluster on a fake AWS account. The control plane is real (package rig). Its nodes are
// instances of package account, and package kubelets boots them. Joiner runs with the EC2 provider. The demo and the
// provider's end-to-end tests use this package.
package eks

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/kubelets"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Options configure a cluster.
type Options struct {
	Rig     rig.Options
	Account account.Options
	// At is an account outside of this process. If it is set, Account is ignored.
	At *Site
	// Every is how often kubelets look for instances; see package kubelets.
	Every time.Duration
}

// Site is an account at a server that speaks AWS's protocols, but has no EKS cluster. Flags tell Joiner what EKS would
// say (E-64).
type Site struct {
	AWS            aws.Config
	Env            []string // for Joiner, as the same user
	Cluster, Queue string   // name and name or URL
}

// Cluster is a control plane with Joiner. Account is the source of its nodes; nil for a Site.
type Cluster struct {
	*rig.Rig
	Account  *account.Account
	Kubelets *kubelets.Kubelets
}

// Start starts the account, the control plane, kubelets and, unless Options.Rig says otherwise, Joiner. The caller
// must call Stop. After an error nothing is left behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{}
	if o.At == nil {
		a, err := account.Start(o.Account)
		if err != nil {
			return nil, err
		}
		c.Account = a
		o.At = &Site{AWS: a.Config(account.Kubelets), Env: a.Env(account.Joiner), Cluster: a.Cluster, Queue: a.Queue}
	}
	later := o.Rig.WithoutJoiner
	o.Rig.WithoutJoiner = true // it asks EKS for the cluster, which is not there yet
	o.Rig.Args = slices.Concat(o.Rig.Args, []string{"--cluster-name", o.At.Cluster, "--interruption-queue",
		o.At.Queue})
	o.Rig.Env = slices.Concat(o.Rig.Env, o.At.Env)
	var err error
	if c.Rig, err = rig.Start(ctx, o.Rig); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.join(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if later {
		return c, nil
	}
	if err := c.startJoiner(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// startJoiner starts Joiner, which asks EKS about the cluster. Without EKS it gets flags instead.
func (c *Cluster) startJoiner(ctx context.Context) error {
	if c.Account != nil {
		return c.StartJoiner(ctx)
	}
	flags, err := c.facts(ctx)
	if err != nil {
		return err
	}
	return c.StartJoiner(ctx, flags...)
}

// facts returns the flags for what EKS would say.
func (c *Cluster) facts(ctx context.Context) ([]string, error) {
	admin, err := c.Cluster.RESTConfig("admin")
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(admin)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("eks: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("eks: %w", err)
	}
	services, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("eks: asking the API server for the addresses of services: %w", err)
	}
	return []string{
		"--cluster-endpoint", config.Host, "--cluster-ca-bundle", base64.StdEncoding.EncodeToString(config.CAData),
		"--cluster-service-cidr", services.Spec.CIDRs[0],
	}, nil
}

// join connects the control plane and the account.
func (c *Cluster) join(ctx context.Context, o Options) error {
	admin, err := c.Cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	if c.Account != nil {
		if err := c.Account.Adopt(ctx, admin); err != nil {
			return err
		}
	}
	c.Kubelets, err = kubelets.Start(kubelets.Options{
		AWS: o.At.AWS, Cluster: o.At.Cluster, Kube: admin, Every: o.Every, Log: o.Rig.Log,
	})
	return err
}

// Stop ends everything, Joiner first.
func (c *Cluster) Stop() error {
	var failed []error
	if c.Rig != nil {
		failed = append(failed, c.StopJoiner())
	}
	if c.Kubelets != nil {
		c.Kubelets.Stop()
	}
	if c.Rig != nil {
		failed = append(failed, c.Rig.Stop())
	}
	if c.Account != nil {
		failed = append(failed, c.Account.Stop())
	}
	return errors.Join(failed...)
}
