package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Forwarder reaches the loopback of pods with the caller's rights.
type Forwarder interface {
	// Forward opens a local address that leads to a port of a pod, until stop is called.
	Forward(ctx context.Context, namespace, pod string, port int) (address string, stop func(), err error)
}

// usualReadPort is that of a controller with the usual flags.
const usualReadPort = 8082

// Bounds of an answer of a controller.
const (
	answerWithin = 30 * time.Second
	mostRefusal  = 4 << 10
)

// instead says what works without a controller.
const instead = "--rebuild makes a dump from the objects of the API server"

// ask asks the controller that leads for what it planned with last.
func (with *dumping) ask(ctx context.Context, config Config, now time.Time) (dump.Dump, error) {
	client, err := config.Client(*with.connection)
	if err != nil {
		return dump.Dump{}, err
	}
	in := whatif.Surroundings{LeaseName: with.where.lease}
	in.Leases, err = leasesOf(ctx, client, with.where)
	if apierrors.IsForbidden(err) {
		return dump.Dump{}, fmt.Errorf("who leads is not known, for want of the right to list leases.coordination.k8s.io: %s",
			instead)
	}
	if err != nil {
		return dump.Dump{}, err
	}
	leading, _ := in.Controllers(func(string, string) *corev1.Pod { return nil }, true, now)
	switch {
	case len(in.Leases) == 0:
		return dump.Dump{}, fmt.Errorf("%s: %s", whatif.NoLease(with.where.lease), instead)
	case len(leading) == 0:
		return dump.Dump{}, fmt.Errorf("no controller leads: %s", instead)
	}
	if config.Forward == nil {
		return dump.Dump{}, fmt.Errorf("no pod can be reached from here: %s", instead)
	}
	forwarder, err := config.Forward(*with.connection)
	if err != nil {
		return dump.Dump{}, err
	}
	namespace, _, _ := strings.Cut(leading[0].Lease, "/")
	made, err := with.fetch(ctx, forwarder, namespace, leading[0].Leader)
	if err != nil {
		return made, fmt.Errorf("pod %s/%s: %w: %s", namespace, leading[0].Leader, err, instead)
	}
	return made, nil
}

// fetch reads the dump of a pod.
func (with *dumping) fetch(ctx context.Context, to Forwarder, namespace, pod string) (made dump.Dump, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	address, stop, err := to.Forward(ctx, namespace, pod, with.port)
	switch {
	case apierrors.IsForbidden(err) || err != nil && strings.Contains(strings.ToLower(err.Error()), "forbidden"):
		return made, fmt.Errorf("it cannot be asked, for want of the right to create pods/portforward in namespace %s "+
			"(rule: {apiGroups: [\"\"], resources: [pods/portforward], verbs: [create]})", namespace)
	case err != nil:
		return made, fmt.Errorf("it cannot be reached (%s)", strings.Join(strings.Fields(err.Error()), " "))
	}
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/joiner/v1/dump", nil)
	if err != nil {
		return made, err
	}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return made, fmt.Errorf("it does not answer on port %d: it may be a version without a read API, or run with another "+
			"--read-port", with.port)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, mostRefusal))
		return made, errors.New(strings.Join(strings.Fields(string(text)), " "))
	}
	made, _, err = dump.Read(answer.Body, dump.Options{})
	return made, err
}
