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

// Cluster is the provider's access to a Kubernetes API server. Errors are those of k8s.io/apimachinery/pkg/api/errors:
// IsNotFound, IsAlreadyExists and IsConflict must distinguish them. Lists, node classes, boot records and existing
// nodes may come from a cache. But only the API server itself can tell that a node is missing. Returned objects belong
// to the caller, except those of Nodes.
type Cluster interface {
	// NodeClass returns a KWOKNodeClass.
	NodeClass(ctx context.Context, name string) (*kwokv1alpha1.KWOKNodeClass, error)
	// NodeClasses returns all KWOKNodeClasses.
	NodeClasses(ctx context.Context) ([]*kwokv1alpha1.KWOKNodeClass, error)

	// CreateNode creates a node with its status: unlike most kinds, nodes keep the status of the create.
	CreateNode(ctx context.Context, node *corev1.Node) error
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Nodes returns all nodes. The caller must not change them: they may be those of a cache.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
	// AnnotateNode sets one annotation, provided the node still has this UID; otherwise the error is a conflict.
	AnnotateNode(ctx context.Context, name string, uid types.UID, key, value string) error
	// BootNode writes the boot ID of the node, and a condition unless its type is empty, provided the node still has
	// this UID; otherwise the error is a conflict.
	BootNode(ctx context.Context, name string, uid types.UID, bootID string, condition corev1.NodeCondition) error
	// DeleteNode deletes the node, provided it still has this UID; otherwise the error is a conflict.
	DeleteNode(ctx context.Context, name string, uid types.UID) error

	// CreateBootRecord stores a record durably under the name of its node. Another record of that name is an error.
	CreateBootRecord(ctx context.Context, record BootRecord) error
	BootRecord(ctx context.Context, name string) (BootRecord, error)
	BootRecords(ctx context.Context) ([]BootRecord, error)
	DeleteBootRecord(ctx context.Context, name string) error
}

// BootRecord is a launched machine whose node has not joined yet. It is plain data for a ConfigMap: encoding/json
// writes it and [ReadBootRecord] reads it.
type BootRecord struct {
	// Due is when the node joins.
	Due time.Time `json:"due"`
	// Never is true when it never joins, whatever Due says.
	Never bool `json:"never,omitempty"`
	// Node is the complete node to create then; never nil.
	Node *corev1.Node `json:"node"`
}

// ReadBootRecord reads a record that encoding/json wrote, and refuses invalid ones.
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
