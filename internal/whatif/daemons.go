package whatif

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// DaemonFacts says what the pod of a DaemonSet asks for on a node, where the pods of that set do not all ask for the
// same (K-33). Its names in JSON are an API (U-29).
type DaemonFacts struct {
	Name string `json:"name"` // namespace/name of the DaemonSet
	// Here is what its pod on this node asks for, Newest what the newest pod does, Planned what a new node of the pool
	// and instance type is planned with.
	Here    string `json:"here"`
	Newest  string `json:"newest"`
	Planned string `json:"planned"`
}

func (d DaemonFacts) String() string {
	return fmt.Sprintf("pods of DaemonSet %s ask for other amounts on other nodes: %s here, %s the newest one; "+
		"a new node like this one is planned with %s", d.Name, d.Here, d.Newest, d.Planned)
}

// daemonFacts returns these facts for a node, in the order of the snapshot's daemons.
func daemonFacts(s *cluster.Snapshot, node *cluster.Node) (list []DaemonFacts) {
	for i := range s.Daemons {
		daemon := &s.Daemons[i]
		if daemon.Seen == nil {
			continue
		}
		for _, pod := range node.Pods {
			if pod.Daemon == daemon.Name {
				list = append(list, DaemonFacts{Name: daemon.Name, Here: asked(s, pod.Shape.Requests),
					Newest: asked(s, daemon.Shape.Requests), Planned: asked(s, daemon.OnNode(node))})
				break
			}
		}
	}
	return list
}

// asked formats a pod's requests, without the pod itself.
func asked(s *cluster.Snapshot, v resources.Vector) string {
	return s.Names.Format(v.With(resources.Pods, 0))
}
