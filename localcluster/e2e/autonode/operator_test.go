package autonode

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// infraID is the cluster's name on AWS.
const infraID = "cluster-x7k2p"

// run makes sure that the operator runs with these flags beyond those of every operator.
func (w *world) run(flags ...string) {
	w.t.Helper()
	if w.operator != nil {
		select {
		case <-w.operator.Ended():
			w.t.Errorf("the operator ended without being asked to")
			w.operator = nil
		default:
			if strings.Join(w.flags, " ") == strings.Join(flags, " ") {
				return
			}
			w.halt()
		}
	}
	var err error
	w.flags = flags
	if w.operator, err = w.guest.Run(w.ctx, w.program(flags)); err != nil {
		w.t.Fatal(err)
	}
}

// halt stops the operator in good order.
func (w *world) halt() {
	w.t.Helper()
	running := w.operator
	w.operator = nil
	if running == nil {
		return
	}
	if err := running.Stop(); err != nil {
		w.t.Error(err)
	}
}

// restart starts a new process of the operator with the same flags.
func (w *world) restart() {
	w.t.Helper()
	flags := w.flags
	w.halt()
	w.run(flags...)
}

// bootstrap returns the flags for the nodes' user data, unless a test takes it from Secrets.
func (f *fixture) bootstrap() []string {
	return []string{"--userdata-file", f.userData, "--ami-ids", "ami-0a"}
}

// program returns joiner-operator between the two clusters.
func (f *fixture) program(flags []string) rig.Program {
	if !slices.Contains(flags, "--userdata-secrets") {
		flags = append(f.bootstrap(), flags...)
	}
	if !slices.Contains(flags, fromHosted) {
		flags = append([]string{"--infra-id", infraID, "--instance-profile", infraID + "-worker"}, flags...)
	}
	return rig.OperatorProgram(f.binary, f.kubeconfig, f.namespace, flags...)
}

// metric returns the lines of the operator's metrics that begin with a name.
func (w *world) metric(name string) []string {
	w.t.Helper()
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", w.operator.MetricsPort))
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
