package kwok_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok/kwoktest"
	"github.com/joiner-autoscaler/joiner/internal/provider/providertest"
)

// world is a provider on a cluster in memory, with a clock that stands still until it is moved.
type world struct {
	*kwok.Provider
	cluster *kwoktest.Cluster
	clock   time.Time
}

func newWorld(t *testing.T, inventory kwok.Inventory, delay time.Duration) *world {
	t.Helper()
	w := &world{clock: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return w.clock }
	w.cluster = kwoktest.New(now)
	w.cluster.SetNodeClass("default", delay, "")
	w.cluster.SetNodeClass("broken", 0, "SubnetsNotFound")
	p, err := kwok.New(kwok.Config{Cluster: w.cluster, Inventory: inventory, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	w.Provider = p
	return w
}

func (w *world) ClassName() string         { return "default" }
func (w *world) NotReadyClassName() string { return "broken" }
func (w *world) Machines() int             { return w.cluster.Machines() }

// Interrupt annotates the machine's node, as a user does.
func (w *world) Interrupt(t *testing.T, providerID string) {
	t.Helper()
	node, err := w.cluster.Node(t.Context(), strings.TrimPrefix(providerID, "kwok://"))
	if err == nil {
		err = w.cluster.AnnotateNode(t.Context(), node.Name, node.UID, kwok.InterruptedAnnotationKey, "now")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// BootOf is the boot ID of the machine's node.
func (w *world) BootOf(t *testing.T, providerID string) string {
	t.Helper()
	node, err := w.cluster.Node(t.Context(), strings.TrimPrefix(providerID, "kwok://"))
	if err != nil {
		t.Fatal(err)
	}
	return node.Status.NodeInfo.BootID
}

// Settle lets an hour pass and boots the machines that are due.
func (w *world) Settle(t *testing.T) {
	t.Helper()
	w.clock = w.clock.Add(time.Hour)
	if next, err := w.Boot(t.Context(), w.clock); err != nil || !next.IsZero() {
		t.Errorf("Boot: next %v, error %v; want neither", next, err)
	}
}

// TestContract is P-50 for every inventory, with and without a registration delay.
func TestContract(t *testing.T) {
	t.Parallel()
	for name, load := range map[string]func() (kwok.Inventory, error){
		"generic": kwok.GenericInventory,
		"ec2":     kwok.EC2Inventory,
		"file":    func() (kwok.Inventory, error) { return kwok.ParseInventory([]byte(smallFile)) },
	} {
		inventory, err := load()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, delay := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprintf("%s, delay %s", name, delay), func(t *testing.T) {
				t.Parallel()
				providertest.Run(t, func(t *testing.T) (provider.Provider, providertest.Harness) {
					w := newWorld(t, inventory, delay)
					return w, w
				})
			})
		}
	}
}

// smallFile has a reservation for two machines, a type of two operating systems and an offering that is sold out.
const smallFile = `[
 {"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux", "windows"],
  "resources": {"cpu": "2", "memory": "8Gi", "pods": "29", "ephemeral-storage": "20Gi"},
  "offerings": [
   {"Price": 0.096, "Available": true, "Requirements": [
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a", "zone-b"]}]},
   {"Price": 0.02, "Available": false, "Requirements": [
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]},
 {"name": "c5.xlarge", "architecture": "amd64", "operatingSystems": ["linux"],
  "resources": {"cpu": 4, "memory": "8Gi"},
  "offerings": [
   {"Price": 0.17, "Available": true, "Requirements": [
     {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
     {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]}
]`
