package joiner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// commitmentsEvery is how often the file of commitments is read. A mounted ConfigMap changes about a minute after its
// object.
const commitmentsEvery = 30 * time.Second

// readCommitments reads the file of --commitments-file (K-55).
func readCommitments(path string) (text []byte, list []cluster.Commitment, err error) {
	text, err = os.ReadFile(path)
	if err == nil && len(text) == 0 { // somebody may be writing it
		err = errors.New("it is empty: want YAML with the list commitments, in which [] stands for none")
	}
	if err == nil {
		list, err = translate.Commitments(text)
	}
	if err != nil {
		return text, nil, fmt.Errorf("--commitments-file %s: %w", path, err)
	}
	return text, list, nil
}

// commitmentsKeeper tells the store when the file of commitments changes. While the file cannot be read, its last
// readable content holds.
type commitmentsKeeper struct {
	path  string
	tell  func([]cluster.Commitment)
	read  prometheus.Gauge
	log   logr.Logger
	last  []byte // the text that holds
	fault string // the last error that was logged of an unreadable file
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: replicas that do not lead keep a snapshot too.
func (*commitmentsKeeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k *commitmentsKeeper) Start(ctx context.Context) error {
	ticks := time.NewTicker(commitmentsEvery)
	defer ticks.Stop()
	for {
		k.look()
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// look reads the file once.
func (k *commitmentsKeeper) look() {
	text, list, err := readCommitments(k.path)
	if err != nil {
		k.read.Set(0)
		if said := err.Error(); said != k.fault {
			k.fault = said
			k.log.Error(err, "the commitments cannot be read: what the file said last holds")
		}
		return
	}
	k.read.Set(1)
	if k.fault == "" && bytes.Equal(text, k.last) {
		return
	}
	k.last, k.fault = text, ""
	k.tell(list)
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	k.log.Info("read the commitments", "file", k.path, "commitments", strings.Join(names, ","))
}
