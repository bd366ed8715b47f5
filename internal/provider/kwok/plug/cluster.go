package plug

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

const (
	// bootRecordLabel marks the ConfigMaps with boot records.
	bootRecordLabel = "joiner.sh/boot-record"
	// bootRecordPrefix distinguishes their names from others in the namespace.
	bootRecordPrefix = "joiner-boot-"
	// bootRecordKey is the entry with the record.
	bootRecordKey = "record.json"
)

// kwokCluster is the kwok provider's view of the API server. It reads from a cache where stale data does no harm:
// lists, node classes, and nodes that the cache has. Only the API server itself can tell that a node is missing.
//
// Boot records come from the cache too, although a new one may be missing there. Names are unique, so a second launch
// finds the first. If a record is overlooked when its claim goes, its machine is collected later.
type kwokCluster struct {
	client    client.Client
	live      client.Reader
	namespace string // of the boot records
}

// NewCluster returns the kwok provider's port; boot records are ConfigMaps in namespace.
func NewCluster(cached client.Client, live client.Reader, namespace string) kwok.Cluster {
	return kwokCluster{client: cached, live: live, namespace: namespace}
}

func (k kwokCluster) NodeClass(ctx context.Context, name string) (*kwokv1alpha1.KWOKNodeClass, error) {
	var class kwokv1alpha1.KWOKNodeClass
	return &class, k.client.Get(ctx, types.NamespacedName{Name: name}, &class)
}

func (k kwokCluster) NodeClasses(ctx context.Context) ([]*kwokv1alpha1.KWOKNodeClass, error) {
	var list kwokv1alpha1.KWOKNodeClassList
	if err := k.client.List(ctx, &list); err != nil {
		return nil, err
	}
	classes := make([]*kwokv1alpha1.KWOKNodeClass, len(list.Items))
	for i := range list.Items {
		classes[i] = &list.Items[i]
	}
	return classes, nil
}

func (k kwokCluster) CreateNode(ctx context.Context, node *corev1.Node) error {
	return k.client.Create(ctx, node.DeepCopy())
}

func (k kwokCluster) Node(ctx context.Context, name string) (*corev1.Node, error) {
	var node corev1.Node
	if err := k.client.Get(ctx, types.NamespacedName{Name: name}, &node); err == nil {
		return &node, nil
	}
	return &node, k.live.Get(ctx, types.NamespacedName{Name: name}, &node)
}

func (k kwokCluster) Nodes(ctx context.Context) ([]*corev1.Node, error) {
	var list corev1.NodeList
	if err := k.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	nodes := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = &list.Items[i]
	}
	return nodes, nil
}

func (k kwokCluster) AnnotateNode(ctx context.Context, name string, uid types.UID, key, value string) error {
	// A patch that names another UID than the object's is a conflict.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "annotations": map[string]string{key: value}},
	})
	if err != nil {
		return fmt.Errorf("annotating node %s: %w", name, err)
	}
	return k.client.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		client.RawPatch(types.MergePatchType, patch))
}

func (k kwokCluster) BootNode(ctx context.Context, name string, uid types.UID, bootID string,
	condition corev1.NodeCondition) error {
	status := map[string]any{"nodeInfo": map[string]string{"bootID": bootID}}
	if condition.Type != "" {
		status["conditions"] = []corev1.NodeCondition{condition} // conditions of other types stay
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": status})
	if err != nil {
		return fmt.Errorf("writing the boot ID of node %s: %w", name, err)
	}
	return k.client.Status().Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		client.RawPatch(types.StrategicMergePatchType, patch))
}

func (k kwokCluster) DeleteNode(ctx context.Context, name string, uid types.UID) error {
	return k.client.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		client.Preconditions{UID: &uid})
}

func (k kwokCluster) CreateBootRecord(ctx context.Context, record kwok.BootRecord) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("writing the boot record of %s: %w", record.Node.Name, err)
	}
	return k.client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: bootRecordPrefix + record.Node.Name,
			Labels: map[string]string{bootRecordLabel: "true"}},
		Data: map[string]string{bootRecordKey: string(data)},
	})
}

func (k kwokCluster) BootRecord(ctx context.Context, name string) (kwok.BootRecord, error) {
	var stored corev1.ConfigMap
	if err := k.client.Get(ctx, types.NamespacedName{Namespace: k.namespace, Name: bootRecordPrefix + name},
		&stored); err != nil {
		return kwok.BootRecord{}, err
	}
	return readBootRecord(stored)
}

func (k kwokCluster) BootRecords(ctx context.Context) ([]kwok.BootRecord, error) {
	var list corev1.ConfigMapList
	if err := k.client.List(ctx, &list, client.InNamespace(k.namespace),
		client.HasLabels{bootRecordLabel}); err != nil {
		return nil, err
	}
	var records []kwok.BootRecord
	for _, stored := range list.Items {
		// A record broken by hand must not hold up the others; its own machine gets the error.
		if record, err := readBootRecord(stored); err == nil {
			records = append(records, record)
		}
	}
	return records, nil
}

func (k kwokCluster) DeleteBootRecord(ctx context.Context, name string) error {
	var stored corev1.ConfigMap
	if err := k.client.Get(ctx, types.NamespacedName{Namespace: k.namespace, Name: bootRecordPrefix + name},
		&stored); err != nil {
		return err // most machines have none
	}
	return k.client.Delete(ctx, &stored)
}

func readBootRecord(stored corev1.ConfigMap) (kwok.BootRecord, error) {
	var record kwok.BootRecord
	if err := json.Unmarshal([]byte(stored.Data[bootRecordKey]), &record); err != nil {
		return record, fmt.Errorf("reading ConfigMap %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	if record.Node == nil {
		return record, fmt.Errorf("reading ConfigMap %s/%s: it has no node", stored.Namespace, stored.Name)
	}
	return record, nil
}
