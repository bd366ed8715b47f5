package kwok

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
)

// Cluster is what the provider needs of a Kubernetes API server. Errors are those of
// k8s.io/apimachinery/pkg/api/errors: IsNotFound, IsAlreadyExists and IsConflict must tell them apart. Node and
// BootRecord must not answer from a cache; lists and node classes may. Returned objects belong to the caller.
type Cluster interface {
	// NodeClass returns a KWOKNodeClass.
	NodeClass(ctx context.Context, name string) (*kwokv1alpha1.KWOKNodeClass, error)
	// NodeClasses returns all of them.
	NodeClasses(ctx context.Context) ([]*kwokv1alpha1.KWOKNodeClass, error)

	// CreateNode creates a node with its status: unlike most kinds, nodes keep their status on creation.
	CreateNode(ctx context.Context, node *corev1.Node) error
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Nodes returns all nodes, to be read only: they may be those of a cache.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
	// AnnotateNode sets one annotation, provided the node still has this UID; else the error is a conflict.
	AnnotateNode(ctx context.Context, name string, uid types.UID, key, value string) error
	// BootNode writes the boot ID of the node, and one of its conditions unless that has no type, provided the node
	// still has this UID; else the error is a conflict.
	BootNode(ctx context.Context, name string, uid types.UID, bootID string, condition corev1.NodeCondition) error
	// DeleteNode deletes the node, provided it still has this UID; else the error is a conflict.
	DeleteNode(ctx context.Context, name string, uid types.UID) error

	// CreateBootRecord stores a record durably under the name of its node, which no other record may have.
	CreateBootRecord(ctx context.Context, record BootRecord) error
	BootRecord(ctx context.Context, name string) (BootRecord, error)
	BootRecords(ctx context.Context) ([]BootRecord, error)
	DeleteBootRecord(ctx context.Context, name string) error
}

// BootRecord is a machine that was launched but whose node has not joined yet. It is plain data, fit for a ConfigMap:
// encoding/json writes it and [ReadBootRecord] reads it.
type BootRecord struct {
	// Due is when the node joins.
	Due time.Time `json:"due"`
	// Never is true when it will not, whatever Due says.
	Never bool `json:"never,omitempty"`
	// Node is what will be created then, complete; never nil.
	Node *corev1.Node `json:"node"`
}

// ReadBootRecord reads what encoding/json wrote, and refuses what cannot be a record.
func ReadBootRecord(data []byte) (BootRecord, error) {
	var record BootRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return BootRecord{}, fmt.Errorf("boot record: %w", err)
	}
	if record.Node == nil || record.Node.Name == "" || record.Node.Spec.ProviderID != providerIDPrefix+
		record.Node.Name {
		return BootRecord{}, fmt.Errorf("boot record: want a node with a name and the provider ID %s<name>",
			providerIDPrefix)
	}
	return record, nil
}
