package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Defaults of a controller: the names of its lease and of the namespace of its switch.
const (
	usualLease     = whatif.LeaseName
	usualNamespace = metav1.NamespaceSystem
)

// place is where a controller keeps what it owns.
type place struct{ namespace, lease string }

func (p *place) flags(command *cobra.Command) {
	command.Flags().StringVar(&p.namespace, "system-namespace", "",
		"namespace in which Joiner keeps its own objects; the default is that of the lease, or "+usualNamespace)
	command.Flags().StringVar(&p.lease, "leader-election-name", usualLease, "name of the controller's lease")
}

func leases() schema.GroupVersionResource {
	return coordinationv1.SchemeGroupVersion.WithResource("leases")
}

func configMaps() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("configmaps")
}

// findSurroundings finds leases and the switch in documents from files.
func findSurroundings(documents []whatif.Document, where place, into *whatif.Surroundings) error {
	for _, d := range documents {
		o := unstructured.Unstructured{Object: d.Content}
		var err error
		switch {
		case o.GetKind() == "Lease" && o.GetName() == where.lease:
			var lease coordinationv1.Lease
			err = understand(d.Content, &lease)
			into.Leases = append(into.Leases, lease)
		case o.GetKind() == "ConfigMap" && o.GetName() == translate.SwitchName:
			into.Switch = &corev1.ConfigMap{}
			err = understand(d.Content, into.Switch)
		case o.GetKind() == "ConfigMap" && o.GetName() == translate.TakeoverName:
			into.Takeover = &corev1.ConfigMap{}
			err = understand(d.Content, into.Takeover)
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", d.Where, o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// asked says what to read about a controller: who leads, and whether disruption is paused. heading wants the leader
// only for a heading, and does without it if leases may not be read.
type asked struct{ leader, pause, heading bool }

// read reads leases and the switch of a cluster, as far as asked. It looks for the switch in the namespace of the
// lease. unread names what may not be read.
func (p place) read(ctx context.Context, client dynamic.Interface, what asked, into *whatif.Surroundings) (
	documents []whatif.Document, unread []string, err error) {
	if needed := what.leader || what.pause && p.namespace == ""; needed || what.heading {
		into.Leases, err = leasesOf(ctx, client, p)
		if !needed && ctx.Err() == nil {
			err = nil // the leases are wanted for the heading only
		} else if apierrors.IsForbidden(err) {
			into.LeasesUnread = true
			unread, err = append(unread, "who leads, for want of the right to list leases.coordination.k8s.io"), nil
		}
		if err != nil {
			return nil, nil, err
		}
		for _, lease := range into.Leases {
			if documents, err = stored(documents, lease); err != nil {
				return nil, nil, err
			}
		}
	}
	if !what.pause {
		return documents, unread, nil
	}
	namespace := p.of(into.Leases)
	found, err := client.Resource(configMaps()).Namespace(namespace).Get(ctx, translate.TakeoverName,
		metav1.GetOptions{})
	if err == nil {
		into.Takeover = &corev1.ConfigMap{}
		err = understand(found.Object, into.Takeover)
	}
	// the read of the switch below needs the same right
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, translate.TakeoverName, err)
	}
	object, err := client.Resource(configMaps()).Namespace(namespace).Get(ctx, translate.SwitchName,
		metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		into.SwitchUnread = true
		return documents, append(unread, fmt.Sprintf("whether disruption is paused, for want of the right to get "+
			"ConfigMap %s/%s", namespace, translate.SwitchName)), nil
	case apierrors.IsNotFound(err):
		return documents, unread, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, translate.SwitchName, err)
	}
	into.Switch = &corev1.ConfigMap{}
	if err := understand(object.Object, into.Switch); err != nil {
		return nil, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, translate.SwitchName, err)
	}
	documents, err = stored(documents, object.Object)
	return documents, unread, err
}

// stored adds an object of a cluster to documents.
func stored(documents []whatif.Document, object any) ([]whatif.Document, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	d := whatif.Document{Where: "the cluster", Stored: true}
	err = json.Unmarshal(data, &d.Content)
	return append(documents, d), err
}

// leasesOf lists the leases of controllers, in all namespaces.
func leasesOf(ctx context.Context, client dynamic.Interface, where place) ([]coordinationv1.Lease, error) {
	name := cmp.Or(where.lease, usualLease)
	list, err := client.Resource(leases()).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return nil, fmt.Errorf("listing leases.coordination.k8s.io: %w", err)
	}
	var found []coordinationv1.Lease
	for _, item := range list.Items {
		var lease coordinationv1.Lease
		if err := understand(item.Object, &lease); err != nil {
			return nil, fmt.Errorf("reading Lease %s/%s: %w", item.GetNamespace(), item.GetName(), err)
		}
		if lease.Name == name {
			found = append(found, lease)
		}
	}
	slices.SortFunc(found, func(a, b coordinationv1.Lease) int { return strings.Compare(a.Namespace, b.Namespace) })
	return found, nil
}

// understand reads an object into its type. A file's numbers are not those of an API client, so it goes by way of
// JSON.
func understand(content map[string]any, into any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// of returns the namespace of the controller's objects, as far as its lease tells: that of the leading controller, or
// of the only one.
func (p place) of(found []coordinationv1.Lease) string {
	if p.namespace != "" {
		return p.namespace
	}
	nobody := func(string, string) *corev1.Pod { return nil }
	leading, silent := whatif.Surroundings{Leases: found}.Controllers(nobody, false, time.Now())
	for _, list := range [][]whatif.Controller{leading, silent} {
		if len(list) == 1 {
			namespace, _, _ := strings.Cut(list[0].Lease, "/")
			return namespace
		}
		if len(list) > 1 {
			break
		}
	}
	return usualNamespace
}
