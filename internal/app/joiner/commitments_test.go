package joiner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// K-55. A changed file is read again. A file that can no longer be read changes nothing: the log says so once, and a
// metric for as long as that lasts.
func TestK55_CommitmentsAreReadAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "commitments.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told [][]cluster.Commitment
	var lines []string
	k := commitmentsKeeper{path: path, tell: func(list []cluster.Commitment) { told = append(told, list) },
		read: prometheus.NewGauge(prometheus.GaugeOpts{Name: "read"}),
		log:  funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
	check := func(after string, looks, said int, read float64) {
		t.Helper()
		k.look()
		if k.look(); len(told) != looks || len(lines) != said || gauge(t, k.read) != read {
			t.Fatalf("after %s it was told %d times, said %q, and the metric is %v", after, len(told), lines,
				gauge(t, k.read))
		}
	}
	write("commitments:\n- {name: a, instances: 1}\n")
	check("the first file", 1, 1, 1)
	write("commitments:\n- {name: a, instances: 2}\n- {name: b, dollarsPerHour: 1}\n")
	check("a change", 2, 2, 1)
	write("commitments:\n- {name: a, instances: 0}\n")
	check("a fault", 2, 3, 0)
	if !strings.Contains(lines[2], "commitments[0].instances is 0: want a number above 0") ||
		!strings.Contains(lines[2], path) {
		t.Errorf("it says %s", lines[2])
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("the file is gone", 2, 4, 0)
	write("")
	check("the file is empty", 2, 5, 0)
	write("commitments:\n- {name: a, instances: 3}\n")
	if check("the fault is mended", 3, 6, 1); told[2][0].Instances != 3 {
		t.Errorf("it was told %v", told[2])
	}
}

// K-55. At the start a file that cannot be read is an error.
func TestK55_AFileOfCommitmentsThatCannotBeReadStopsTheStart(t *testing.T) {
	t.Parallel()
	config := DefaultConfig()
	config.CommitmentsFile = filepath.Join(t.TempDir(), "none.yaml")
	if _, err := pictureOf(config, nil); err == nil ||
		!strings.HasPrefix(err.Error(), "--commitments-file "+config.CommitmentsFile+": ") {
		t.Errorf("the error is %v", err)
	}
}

func gauge(t *testing.T, g prometheus.Gauge) float64 {
	t.Helper()
	var metric dto.Metric
	if err := g.Write(&metric); err != nil {
		t.Fatal(err)
	}
	return metric.GetGauge().GetValue()
}
