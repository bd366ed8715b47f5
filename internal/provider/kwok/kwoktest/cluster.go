// Package kwoktest is an in-memory API server for the kwok provider: it implements kwok.Cluster with unique names, UID
// preconditions, finalizers that hold a deletion, and validated labels. It keeps copies, so that callers cannot change
// stored objects. It counts calls, and can disturb each of them.
package kwoktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// Disturbance decides the fate of a call, numbered from 1. An error before prevents any effect of the call. An error
// after lets it take effect and replaces the answer.
type Disturbance func(number int, call string) (before, after error)

// Cluster is a kwok.Cluster in memory. Make one with [New]; it is safe for concurrent use.
type Cluster struct {
	now func() time.Time

	mu      sync.Mutex
	disturb Disturbance
	calls   int
	uids    int
	nodes   map[string]*corev1.Node
	classes map[string]*kwokv1alpha1.KWOKNodeClass
	records map[string][]byte // as JSON, as in a ConfigMap
}

var _ kwok.Cluster = (*Cluster)(nil)

// New returns an empty cluster. Its timestamps come from now.
func New(now func() time.Time) *Cluster {
	return &Cluster{now: now, nodes: map[string]*corev1.Node{}, classes: map[string]*kwokv1alpha1.KWOKNodeClass{},
		records: map[string][]byte{}}
}

// Disturb sets the disturbance of later calls, and restarts the count. nil ends it.
func (c *Cluster) Disturb(d Disturbance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disturb, c.calls = d, 0
}

// Calls returns how many calls there were since the start or the last Disturb.
func (c *Cluster) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// do runs a call under the lock, with its disturbance.
func (c *Cluster) do(ctx context.Context, call string, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	var before, after error
	if c.disturb != nil {
		before, after = c.disturb(c.calls, call)
	}
	if before != nil {
		return before
	}
	if err := effect(); err != nil {
		return err
	}
	return after
}

// SetNodeClass stores a node class: ready, as by the CRD's default, or not ready for the given reason.
func (c *Cluster) SetNodeClass(name string, delay time.Duration, notReady string) {
	ready := karpenterv1.Condition{Type: karpenterv1.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Ready"}
	if notReady != "" {
		ready.Status, ready.Reason = metav1.ConditionFalse, notReady
	}
	class := &kwokv1alpha1.KWOKNodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     kwokv1alpha1.KWOKNodeClassStatus{Conditions: []karpenterv1.Condition{ready}},
	}
	if delay > 0 {
		class.Spec.NodeRegistrationDelay = &karpenterv1.Duration{Duration: delay}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.classes[name] = class
}

// DeleteNodeClass starts the deletion of a node class, as if a finalizer held it.
func (c *Cluster) DeleteNodeClass(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if class, found := c.classes[name]; found {
		class.DeletionTimestamp = &metav1.Time{Time: c.now()}
	}
}

// NodeClass returns a node class.
func (c *Cluster) NodeClass(ctx context.Context, name string) (*kwokv1alpha1.KWOKNodeClass, error) {
	var class *kwokv1alpha1.KWOKNodeClass
	err := c.do(ctx, "get node class", func() error {
		stored, found := c.classes[name]
		if !found {
			return notFound("kwoknodeclasses", name)
		}
		class = stored.DeepCopy()
		return nil
	})
	return class, err
}

// NodeClasses returns all node classes, by name.
func (c *Cluster) NodeClasses(ctx context.Context) ([]*kwokv1alpha1.KWOKNodeClass, error) {
	var classes []*kwokv1alpha1.KWOKNodeClass
	err := c.do(ctx, "list node classes", func() error {
		for _, name := range slices.Sorted(maps.Keys(c.classes)) {
			classes = append(classes, c.classes[name].DeepCopy())
		}
		return nil
	})
	return classes, err
}

// SetFaults annotates a node class with its faults.
func (c *Cluster) SetFaults(class, faults string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stored, found := c.classes[class]; found {
		stored.Annotations = map[string]string{kwok.FaultsAnnotationKey: faults}
	}
}

// CreateNode creates a node, with its status.
func (c *Cluster) CreateNode(ctx context.Context, node *corev1.Node) error {
	return c.do(ctx, "create node", func() error {
		if _, found := c.nodes[node.Name]; found {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "nodes"}, node.Name)
		}
		problems := v1validation.ValidateLabels(node.Labels, field.NewPath("metadata", "labels"))
		if len(problems) > 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Node"}, node.Name, problems)
		}
		c.uids++
		stored := node.DeepCopy()
		stored.UID = types.UID(fmt.Sprintf("node-%d", c.uids))
		stored.CreationTimestamp = metav1.NewTime(c.now().Truncate(time.Second))
		stored.DeletionTimestamp = nil
		c.nodes[node.Name] = stored
		return nil
	})
}

// Node returns a node.
func (c *Cluster) Node(ctx context.Context, name string) (*corev1.Node, error) {
	var node *corev1.Node
	err := c.do(ctx, "get node", func() error {
		stored, found := c.nodes[name]
		if !found {
			return notFound("nodes", name)
		}
		node = stored.DeepCopy()
		return nil
	})
	return node, err
}

// Nodes returns all nodes, by name.
func (c *Cluster) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	err := c.do(ctx, "list nodes", func() error {
		for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
			nodes = append(nodes, c.nodes[name].DeepCopy())
		}
		return nil
	})
	return nodes, err
}

// AnnotateNode sets an annotation.
func (c *Cluster) AnnotateNode(ctx context.Context, name string, uid types.UID, key, value string) error {
	return c.do(ctx, "annotate node", func() error {
		node, err := c.precondition(name, uid)
		if err != nil {
			return err
		}
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[key] = value
		return nil
	})
}

// BootNode writes a boot ID and a condition.
func (c *Cluster) BootNode(ctx context.Context, name string, uid types.UID, bootID string,
	condition corev1.NodeCondition) error {
	return c.do(ctx, "boot node", func() error {
		node, err := c.precondition(name, uid)
		if err != nil {
			return err
		}
		node.Status.NodeInfo.BootID = bootID
		if condition.Type != "" {
			node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions,
				func(known corev1.NodeCondition) bool { return known.Type == condition.Type }), condition)
		}
		return nil
	})
}

// DeleteNode removes a node, or starts its deletion when finalizers hold it.
func (c *Cluster) DeleteNode(ctx context.Context, name string, uid types.UID) error {
	return c.do(ctx, "delete node", func() error {
		node, err := c.precondition(name, uid)
		if err != nil {
			return err
		}
		if len(node.Finalizers) == 0 {
			delete(c.nodes, name)
			return nil
		}
		node.DeletionTimestamp = cmp.Or(node.DeletionTimestamp, &metav1.Time{Time: c.now()})
		return nil
	})
}

func (c *Cluster) precondition(name string, uid types.UID) (*corev1.Node, error) {
	node, found := c.nodes[name]
	if !found {
		return nil, notFound("nodes", name)
	}
	if node.UID != uid {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, name,
			fmt.Errorf("the UID is %s, not %s", node.UID, uid))
	}
	return node, nil
}

// SetFinalizers replaces a node's finalizers, like controllers. A node being deleted goes with its last finalizer.
func (c *Cluster) SetFinalizers(name string, finalizers ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	node, found := c.nodes[name]
	if !found {
		return
	}
	node.Finalizers = finalizers
	if len(finalizers) == 0 && node.DeletionTimestamp != nil {
		delete(c.nodes, name)
	}
}

// Machines counts the existing machines: running nodes, and records of booting ones.
func (c *Cluster) Machines() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]bool{}
	for name := range c.records {
		names[name] = true
	}
	for name, node := range c.nodes {
		if _, terminated := node.Annotations[kwok.TerminatedAnnotationKey]; !terminated {
			names[name] = true
		}
	}
	return len(names)
}

// CreateBootRecord stores a record.
func (c *Cluster) CreateBootRecord(ctx context.Context, record kwok.BootRecord) error {
	return c.do(ctx, "create boot record", func() error {
		if _, found := c.records[record.Node.Name]; found {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "bootrecords"}, record.Node.Name)
		}
		data, err := json.Marshal(record)
		if err != nil {
			return err
		}
		c.records[record.Node.Name] = data
		return nil
	})
}

// BootRecord returns a record.
func (c *Cluster) BootRecord(ctx context.Context, name string) (kwok.BootRecord, error) {
	var record kwok.BootRecord
	err := c.do(ctx, "get boot record", func() error {
		data, found := c.records[name]
		if !found {
			return notFound("bootrecords", name)
		}
		var err error
		record, err = kwok.ReadBootRecord(data)
		return err
	})
	return record, err
}

// BootRecords returns all records, by name.
func (c *Cluster) BootRecords(ctx context.Context) ([]kwok.BootRecord, error) {
	var records []kwok.BootRecord
	err := c.do(ctx, "list boot records", func() error {
		for _, name := range slices.Sorted(maps.Keys(c.records)) {
			record, err := kwok.ReadBootRecord(c.records[name])
			if err != nil {
				return err
			}
			records = append(records, record)
		}
		return nil
	})
	return records, err
}

// DeleteBootRecord removes a record.
func (c *Cluster) DeleteBootRecord(ctx context.Context, name string) error {
	return c.do(ctx, "delete boot record", func() error {
		if _, found := c.records[name]; !found {
			return notFound("bootrecords", name)
		}
		delete(c.records, name)
		return nil
	})
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}
