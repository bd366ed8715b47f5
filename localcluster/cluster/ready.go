package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// probeInterval is short because a start takes only seconds.
	probeInterval = 50 * time.Millisecond
	// probeTimeout bounds one question to a component that is starting.
	probeTimeout = 2 * time.Second
)

// errPortTaken says that a component ended because it could not bind a port.
var errPortTaken = errors.New("a port is in use")

// waitReady waits until the component answers its probe. It returns early when
// the process ends, with errPortTaken if it could not bind a port.
func (c *Cluster) waitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, c.setup.options.ReadyTimeout)
	defer cancel()
	url, tlsConfig := c.setup.probe(p.component)
	client := newProbeClient(tlsConfig)
	defer client.CloseIdleConnections()
	var last error
	err := poll(ctx, func() bool {
		if p.hasExited() {
			return true
		}
		last = probe(ctx, client, url)
		return last == nil
	})
	switch {
	case p.hasExited() && p.portTaken():
		return fmt.Errorf("%w: %w", errPortTaken, p.exitError())
	case p.hasExited():
		return p.exitError()
	case err != nil:
		return fmt.Errorf("%s is not ready (%w); last answer: %w\n%s", p.component, err, last, p.logTail())
	}
	return nil
}

// startClients starts the components that only talk to the API server, at the
// same time. Their ports are chosen anew one after another, because they share
// the table of ports.
func (c *Cluster) startClients(ctx context.Context) error {
	pending := c.setup.options.clients()
	for attempt := 1; ; attempt++ {
		failed := c.startTogether(ctx, pending)
		var retry []Component
		for _, component := range pending {
			switch err := failed[component]; {
			case err == nil:
			case errors.Is(err, errPortTaken) && attempt < maxPortAttempts:
				retry = append(retry, component)
			default:
				return err
			}
		}
		if len(retry) == 0 {
			return nil
		}
		for _, component := range retry {
			c.logf("%s: a port was taken by another process; trying new ones", component)
			if err := c.setup.renewPorts(component.ports()); err != nil {
				return err
			}
		}
		pending = retry
	}
}

// startTogether starts components side by side and returns their errors.
func (c *Cluster) startTogether(ctx context.Context, components []Component) map[Component]error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed = map[Component]error{}
	)
	for _, component := range components {
		wg.Go(func() {
			err := c.startOnce(ctx, component)
			mu.Lock()
			defer mu.Unlock()
			failed[component] = err
		})
	}
	wg.Wait()
	return failed
}

// waitUsable waits for the service account that every pod in the namespace
// default needs; the controller manager makes it a moment after its start.
// Without a controller manager nothing makes it.
func (c *Cluster) waitUsable(ctx context.Context) error {
	if c.process(ControllerManager) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.setup.options.ReadyTimeout)
	defer cancel()
	config, err := c.RESTConfig(adminIdentity)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	var last error
	err = poll(ctx, func() bool {
		_, last = clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return last == nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the service account default/default (%w): last answer: %w", err, last)
	}
	return nil
}

// poll calls done until it returns true or ctx ends.
func poll(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

func newProbeClient(config *tls.Config) *http.Client {
	return &http.Client{
		Timeout:   probeTimeout,
		Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true},
	}
}

// probe asks once and returns nil if the answer is 200.
func probe(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
