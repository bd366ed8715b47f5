package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
)

// page is how many objects are read at once.
const page = 500

// converted returns the resources that have two versions. Their CRDs are named like them.
func converted() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		karpenterv1.GroupVersion().WithResource("nodepools"),
		karpenterv1.GroupVersion().WithResource("nodeclaims"),
		awsv1.GroupVersion().WithResource("ec2nodeclasses"),
	}
}

func definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}

// readCluster reads what migrate.Check looks at: our CRDs and objects, and the nodes and pods that may carry dropped
// annotations. A resource that the cluster lacks is left out. One that it serves in v1beta1 only is read in that
// version.
func readCluster(ctx context.Context, client dynamic.Interface) ([]migrate.Object, error) {
	var objects []migrate.Object
	rest := []schema.GroupVersionResource{{Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "pods"}}
	for _, resource := range converted() {
		definition, err := client.Resource(definitions()).Get(ctx, resource.GroupResource().String(),
			metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the CRD %s: %w", resource.GroupResource(), err)
		}
		objects = append(objects, fromCluster(definition))
		if !serves(definition, resource.Version) {
			resource.Version = convert.V1beta1
		}
		rest = append(rest, resource)
	}
	if len(objects) == 0 {
		return nil,
			fmt.Errorf(
				"the cluster has none of the CRDs nodepools.%s, nodeclaims.%s, ec2nodeclasses.%s: there is nothing to check",
				karpenterv1.Group, karpenterv1.Group, awsv1.Group)
	}
	for _, resource := range rest {
		err := eachObject(ctx, client, resource, func(o *unstructured.Unstructured) error {
			objects = append(objects, fromCluster(o))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// serves reports whether a CRD serves a version.
func serves(definition *unstructured.Unstructured, version string) bool {
	return slices.ContainsFunc(versionsOf(definition), func(v map[string]any) bool {
		return v["name"] == version && v["served"] == true
	})
}

func versionsOf(definition *unstructured.Unstructured) []map[string]any {
	items, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var found []map[string]any
	for _, item := range items {
		if version, isObject := item.(map[string]any); isObject {
			found = append(found, version)
		}
	}
	return found
}

// fromCluster gives an object the form that objects of files have.
func fromCluster(o *unstructured.Unstructured) migrate.Object {
	data, err := json.Marshal(o)
	if err != nil {
		return migrate.Object{Content: o.Object}
	}
	content, err := convert.Decode(data)
	if err != nil {
		return migrate.Object{Content: o.Object}
	}
	return migrate.Object{Content: content}
}

// eachObject visits the objects of a resource, page by page; none if the cluster does not have the resource.
func eachObject(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource,
	visit func(*unstructured.Unstructured) error) error {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := client.Resource(resource).List(ctx, options)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return &unstructured.UnstructuredList{}, nil
		}
		return found, err
	}
	return each(ctx, resource.GroupResource().String(), list, metav1.ListOptions{}, visit)
}

// each visits the listed objects, page by page. An error of visit stops it, and is returned unchanged.
func each[T runtime.Object](ctx context.Context, what string, list pager.ListPageFunc, options metav1.ListOptions,
	visit func(T) error) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		found, err := list(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", what, err)
		}
		return found, nil
	})
	pages.PageSize = page
	return pages.EachListItem(ctx, options, func(object runtime.Object) error { return visit(object.(T)) })
}
