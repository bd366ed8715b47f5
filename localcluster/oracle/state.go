package oracle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// state is the state of the cluster for the plugins. The scheduler's own snapshot would have to be rebuilt for each
// binding; this one adds a bound pod at the cost of that pod. Like the scheduler's it consists of framework.NodeInfo,
// which does all the counting.
type state struct {
	base []*framework.NodeInfo // nodes with what runs already
	// now is base with the pods bound so far in this attempt; positions are the same.
	now []*framework.NodeInfo
	// all, affinity and anti are lists of nodes in now, as plugins list them: all nodes, those with pods that have
	// affinity terms, and those with required anti-affinity.
	all, affinity, anti []fwk.NodeInfo

	position map[string]int
}

// placement is a pod and its planned node.
type placement struct {
	pod  *corev1.Pod // without spec.nodeName
	info *framework.PodInfo
	node int // position in state.now
}

func (p placement) name() types.NamespacedName {
	return types.NamespacedName{Namespace: p.pod.Namespace, Name: p.pod.Name}
}

func newState() *state { return &state{position: map[string]int{}} }

func (s *state) clear() {
	s.base, s.now = nil, nil
	clear(s.position)
}

func (s *state) addNode(node *corev1.Node) error {
	if _, twice := s.position[node.Name]; twice {
		return fmt.Errorf("two nodes have the name %q", node.Name)
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	s.position[node.Name] = len(s.base)
	s.base = append(s.base, info)
	return nil
}

// addRunning puts a running pod on its node. Finished pods and unknown nodes are ignored.
func (s *state) addRunning(pod *corev1.Pod) error {
	at, exists := s.position[pod.Spec.NodeName]
	if !exists || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	s.base[at].AddPodInfo(info)
	return nil
}

func (s *state) placement(pod *corev1.Pod, node string) (placement, error) {
	at, exists := s.position[node]
	if !exists {
		return placement{}, fmt.Errorf("pod %s/%s is planned for node %q, which does not exist or goes", pod.Namespace,
			pod.Name, node)
	}
	if pod.Spec.NodeName != "" { // its successor will not be bound yet
		pod = pod.DeepCopy()
		pod.Spec.NodeName, pod.DeletionTimestamp = "", nil
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return placement{}, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return placement{pod: pod, info: info, node: at}, nil
}

// restart resets the state to what runs already.
func (s *state) restart() {
	s.now, s.all, s.affinity, s.anti = s.now[:0], s.all[:0], s.affinity[:0], s.anti[:0]
	for _, info := range s.base {
		own := info.SnapshotConcrete()
		s.now, s.all = append(s.now, own), append(s.all, own)
		if len(own.PodsWithAffinity) > 0 {
			s.affinity = append(s.affinity, own)
		}
		if len(own.PodsWithRequiredAntiAffinity) > 0 {
			s.anti = append(s.anti, own)
		}
	}
}

// bind puts a pod on its node, and updates the lists that plugins use for every pod.
func (s *state) bind(p placement) {
	node := s.now[p.node]
	affinity, anti := len(node.PodsWithAffinity), len(node.PodsWithRequiredAntiAffinity)
	node.AddPodInfo(p.info)
	if affinity == 0 && len(node.PodsWithAffinity) > 0 {
		s.affinity = append(s.affinity, node)
	}
	if anti == 0 && len(node.PodsWithRequiredAntiAffinity) > 0 {
		s.anti = append(s.anti, node)
	}
}

// The methods below implement fwk.SharedLister.

func (s *state) NodeInfos() fwk.NodeInfoLister { return s }

func (s *state) StorageInfos() fwk.StorageInfoLister { return s }

func (s *state) PodGroupStates() fwk.PodGroupStateLister { return nil }

func (s *state) List() ([]fwk.NodeInfo, error) { return s.all, nil }

func (s *state) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) { return s.affinity, nil }

func (s *state) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) { return s.anti, nil }

func (s *state) Get(name string) (fwk.NodeInfo, error) {
	at, exists := s.position[name]
	if !exists {
		return nil, fmt.Errorf("no node %q", name)
	}
	return s.now[at], nil
}

func (s *state) IsPVCUsedByPods(string) bool { return false }
