package joiner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
)

// servedAnnotation marks the CRDs in which this program serves v1beta1. It changes only those back: a CRD that another
// program converts is left alone.
const servedAnnotation = "joiner.sh/v1beta1"

// serveV1beta1 makes the installed CRDs serve v1beta1 through a webhook (V-20), and returns the names of those that it
// changed. It keeps each CRD's CA bundle, which the keeper of certificates writes.
func serveV1beta1(ctx context.Context, c client.Client, webhook crd.Webhook) (changed []string, err error) {
	wanted, err := definitions(func() (map[string][]byte, error) { return crd.Converting(webhook) })
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		written, err := changeDefinition(ctx, c, name, func(current *unstructured.Unstructured) error {
			bundle, _, _ := unstructured.NestedString(current.Object, "spec", "conversion", "webhook", "clientConfig",
				"caBundle")
			if err := take(current, wanted[name]); err != nil {
				return err
			}
			setAnnotation(current, "served")
			if bundle == "" {
				return nil
			}
			return unstructured.SetNestedField(current.Object, bundle, "spec", "conversion", "webhook", "clientConfig",
				"caBundle")
		})
		if err != nil {
			return changed,
				fmt.Errorf(
					"serving v1beta1 in the CustomResourceDefinition %s (its rights are in deploy/v1beta1.yaml): %w",
					name, err)
		}
		if written {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// withdrawV1beta1 undoes serveV1beta1, for all CRDs or for none. It fails when servedDefinitions does.
func withdrawV1beta1(ctx context.Context, c client.Client) (changed []string, err error) {
	plain, err := definitions(crd.Manifests)
	if err != nil {
		return nil, err
	}
	served, err := servedDefinitions(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, name := range served {
		written, err := changeDefinition(ctx, c, name, func(current *unstructured.Unstructured) error {
			setAnnotation(current, "")
			return take(current, plain[name])
		})
		if err != nil {
			return changed,
				fmt.Errorf(
					"taking v1beta1 out of the CustomResourceDefinition %s (its rights are in deploy/v1beta1.yaml): %w",
					name, err)
		}
		if written {
			changed = append(changed, name)
		}
	}
	return changed, nil
}

// servedDefinitions returns the names of the CRDs in which this program serves v1beta1. Its error names those with
// objects still stored in v1beta1: without conversion nobody could read these any more.
func servedDefinitions(ctx context.Context, c client.Client) (served []string, err error) {
	names, err := convertedNames()
	if err != nil {
		return nil, err
	}
	var stored []error
	for _, name := range names {
		current, err := definition(ctx, c, name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading the CustomResourceDefinition %s: %w", name, err)
		case current.GetAnnotations()[servedAnnotation] == "":
			continue
		}
		served = append(served, name)
		versions, _, _ := unstructured.NestedStringSlice(current.Object, "status", "storedVersions")
		if slices.Contains(versions, karpenterv1beta1.Version) {
			stored = append(stored,
				fmt.Errorf(
					"--v1beta1 cannot be switched off: the CustomResourceDefinition %s has v1beta1 in "+
						"status.storedVersions, so objects are still stored in it: "+
						"start with --v1beta1, run joinerctl migrate storage, and switch it off then", name))
		}
	}
	return served, errors.Join(stored...)
}

// convertedNames returns the names of the CRDs that have v1beta1 in our manifests, in order.
func convertedNames() ([]string, error) {
	found, err := definitions(crd.Unconverted)
	return slices.Sorted(maps.Keys(found)), err
}

// definitions reads CRDs from manifests, by name.
func definitions(manifests func() (map[string][]byte, error)) (map[string]*unstructured.Unstructured, error) {
	files, err := manifests()
	if err != nil {
		return nil, err
	}
	found := map[string]*unstructured.Unstructured{}
	for file, content := range files {
		data, err := yaml.YAMLToJSON([]byte(strings.TrimPrefix(string(content), "---\n")))
		if err != nil {
			return nil, fmt.Errorf("reading the embedded manifest %s: %w", file, err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			return nil, fmt.Errorf("reading the embedded manifest %s: %w", file, err)
		}
		found[o.GetName()] = o
	}
	return found, nil
}

func definition(ctx context.Context, c client.Client, name string) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetAPIVersion("apiextensions.k8s.io/v1")
	found.SetKind("CustomResourceDefinition")
	return found, c.Get(ctx, client.ObjectKey{Name: name}, found)
}

// changeDefinition writes a CRD as change makes it, and reports whether that was needed. A missing CRD is no error.
func changeDefinition(ctx context.Context, c client.Client, name string,
	change func(*unstructured.Unstructured) error) (written bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := definition(ctx, c, name)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		before := current.DeepCopy()
		if err := change(current); err != nil || equality.Semantic.DeepEqual(before, current) {
			return err
		}
		written = true
		return c.Update(ctx, current)
	})
	return written && err == nil, err
}

// take copies versions and conversion of one CRD to another. Everything else stays.
func take(current, wanted *unstructured.Unstructured) error {
	for _, field := range []string{"versions", "conversion"} {
		value, found, err := unstructured.NestedFieldCopy(wanted.Object, "spec", field)
		if err != nil {
			return err
		}
		if !found { // the API server's own default
			value = map[string]any{"strategy": "None"}
		}
		if err := unstructured.SetNestedField(current.Object, value, "spec", field); err != nil {
			return err
		}
	}
	return nil
}

func setAnnotation(o *unstructured.Unstructured, value string) {
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if annotations[servedAnnotation] = value; value == "" {
		delete(annotations, servedAnnotation)
	}
	o.SetAnnotations(annotations)
}
