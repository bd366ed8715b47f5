package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// forwarder reaches pods through an API server.
type forwarder struct{ config *rest.Config }

func forward(c cli.Connection) (cli.Forwarder, error) {
	return connect(c, func(config *rest.Config) (cli.Forwarder, error) { return forwarder{config}, nil })
}

// Forward opens a local port that leads to a port on the loopback of a pod, until it is stopped.
func (f forwarder) Forward(ctx context.Context, namespace, pod string, port int) (string, func(), error) {
	client, err := kubernetes.NewForConfig(f.config)
	if err != nil {
		return "", nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return "", nil, err
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).
		SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	to, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop,
		ready, io.Discard, io.Discard)
	if err != nil {
		return "", nil, err
	}
	go func() { ended <- to.ForwardPorts() }()
	end := func() { close(stop) }
	select {
	case <-ready:
	case err := <-ended:
		return "", nil, err
	case <-ctx.Done():
		end()
		return "", nil, ctx.Err()
	}
	ports, err := to.GetPorts()
	if err != nil {
		end()
		return "", nil, fmt.Errorf("no local port was opened: %w", err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), end, nil
}
