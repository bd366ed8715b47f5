// Package eks is a local cluster on an AWS account of this process: a real control plane (package rig), whose nodes are instances
// of package account, brought up by package kubelets, and Joiner with the EC2 provider between them. The demo and the end-to-end
// tests of the provider run on it.
package eks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/kubelets"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Options say how to start a cluster.
type Options struct {
	Rig     rig.Options
	Account account.Options
	// Every is how often kubelets look for instances; see package kubelets.
	Every time.Duration
}

// Cluster is a control plane with Joiner, and the account that its nodes are from.
type Cluster struct {
	*rig.Rig
	Account  *account.Account
	Kubelets *kubelets.Kubelets
}

// Start starts the account, the control plane, kubelets and, unless Options.Rig says otherwise, Joiner. The caller must call Stop.
// On an error nothing is left behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	a, err := account.Start(o.Account)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Account: a}
	later := o.Rig.WithoutJoiner
	o.Rig.WithoutJoiner = true // it asks for the cluster, which is not there yet
	o.Rig.Args = slices.Concat(o.Rig.Args, []string{"--cluster-name", a.Cluster, "--interruption-queue", a.Queue})
	o.Rig.Env = slices.Concat(o.Rig.Env, a.Env(account.Joiner))
	if c.Rig, err = rig.Start(ctx, o.Rig); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.join(ctx, o); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if later {
		return c, nil
	}
	if err := c.StartJoiner(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// join brings control plane and account together.
func (c *Cluster) join(ctx context.Context, o Options) error {
	admin, err := c.Cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	if err := c.Account.Adopt(ctx, admin); err != nil {
		return err
	}
	c.Kubelets, err = kubelets.Start(kubelets.Options{
		AWS: c.Account.Config(account.Kubelets), Cluster: c.Account.Cluster, Kube: admin, Every: o.Every, Log: o.Rig.Log,
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
	return errors.Join(append(failed, c.Account.Stop())...)
}
