package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/dump"
)

// Forwarder connects to the loopback of pods with the caller's rights.
type Forwarder interface {
	// Forward opens a local address that leads to a port of a pod, until stop is called.
	Forward(ctx context.Context, namespace, pod string, port int) (address string, stop func(), err error)
}

// usualReadPort is the read port of a controller with default flags.
const usualReadPort = 8082

// Bounds of an answer of a controller.
const (
	answerWithin = 30 * time.Second
	mostRefusal  = 4 << 10
)

// instead tells users what works without a controller.
const instead = "--rebuild makes a dump from the objects of the API server"

// ask asks the leading controller for the input of its last plan.
func (with *dumping) ask(ctx context.Context, config Config, now time.Time) (dump.Dump, error) {
	way := reaching{connection: with.connection, where: with.where, port: with.port, instead: instead}
	leads, err := way.find(ctx, config, now)
	if err != nil {
		return dump.Dump{}, err
	}
	made, err := fetchDump(ctx, way, leads)
	if err != nil {
		return made, fmt.Errorf("pod %s: %w: %s", leads, err, instead)
	}
	return made, nil
}

// fetchDump reads the dump of a pod.
func fetchDump(ctx context.Context, way reaching, leads leader) (made dump.Dump, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	address, stop, err := way.forward(ctx, leads)
	if err != nil {
		return made, err
	}
	defer stop()
	answer, err := way.get(ctx, address, "/joiner/v1/dump")
	if err != nil {
		return made, err
	}
	defer answer.Body.Close()
	if err := refusal(answer); err != nil {
		return made, err
	}
	made, _, err = dump.Read(answer.Body, dump.Options{})
	return made, err
}

// refusal returns the controller's reason for not answering; nil when it answered.
func refusal(answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, mostRefusal))
	return errors.New(strings.Join(strings.Fields(string(text)), " "))
}
