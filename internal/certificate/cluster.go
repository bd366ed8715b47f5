package certificate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnerLabel marks the Secrets of this package. A Secret without it belongs to somebody else, and is left alone.
const OwnerLabel = "joiner.sh/own-certificates"

// secret is a Store. The client must not read from a cache.
type secret struct {
	client client.Client
	key    client.ObjectKey
}

// SecretStore returns a Store in a Secret. The client must not read from a cache. It needs the rights to get and
// update the Secret, and to create Secrets in the namespace.
func SecretStore(c client.Client, namespace, name string) Store {
	return secret{client: c, key: client.ObjectKey{Namespace: namespace, Name: name}}
}

// Read implements Store.
func (s secret) Read(ctx context.Context) (Stored, error) {
	found := &corev1.Secret{}
	err := s.client.Get(ctx, s.key, found)
	if apierrors.IsNotFound(err) {
		return Stored{Write: s.create}, nil
	}
	if err != nil {
		return Stored{}, err
	}
	if _, ours := found.Labels[OwnerLabel]; !ours {
		return Stored{},
			fmt.Errorf(
				"the Secret %s has no label %s: it is somebody else's and is not touched; name another one, or delete it",
				s.key, OwnerLabel)
	}
	return Stored{Data: found.Data, Write: func(ctx context.Context, data map[string][]byte) error {
		found.Data = data
		return conflict(s.client.Update(ctx, found))
	}}, nil
}

func (s secret) create(ctx context.Context, data map[string][]byte) error {
	made := &corev1.Secret{Type: corev1.SecretTypeTLS, Data: data}
	made.Namespace, made.Name, made.Labels = s.key.Namespace, s.key.Name, map[string]string{OwnerLabel: "true"}
	return conflict(s.client.Create(ctx, made))
}

// conflict maps every error that says that somebody else was faster to ErrConflict.
func conflict(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return ErrConflict
	}
	return err
}

// object is a Target. Objects are untyped here: a typed update would remove fields that a newer API server knows and
// we do not.
type object struct {
	client client.Client
	kind   schema.GroupVersionKind
	name   string
	places func(map[string]any) ([]map[string]any, error) // the clientConfigs
}

// ValidatingWebhooks returns the Target for all webhooks of a ValidatingWebhookConfiguration. The client must not read
// from a cache. It needs the rights to get and update that object.
func ValidatingWebhooks(c client.Client, name string) Target {
	kind := schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingWebhookConfiguration"}
	return object{client: c, kind: kind, name: name,
		places: func(content map[string]any) (places []map[string]any, _ error) {
			webhooks, _, err := unstructured.NestedSlice(content, "webhooks")
			for i := range webhooks {
				webhook, _ := webhooks[i].(map[string]any)
				config, found := webhook["clientConfig"].(map[string]any)
				if !found {
					return nil, fmt.Errorf("webhooks[%d] has no clientConfig", i)
				}
				places = append(places, config)
			}
			content["webhooks"] = webhooks // NestedSlice copies: writes must reach the object
			return places, err
		}}
}

// ConvertedDefinition returns the Target for the conversion webhook of a CustomResourceDefinition (V-20). The client
// must not read from a cache. It needs the rights to get and update that object.
func ConvertedDefinition(c client.Client, name string) Target {
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	return object{client: c, kind: kind, name: name, places: func(content map[string]any) ([]map[string]any, error) {
		at := content
		for _, name := range []string{"spec", "conversion", "webhook", "clientConfig"} {
			inner, found := at[name].(map[string]any)
			if !found {
				return nil, errors.New("spec.conversion.webhook.clientConfig is missing: it has no conversion webhook")
			}
			at = inner
		}
		return []map[string]any{at}, nil
	}}
}

// IfPresent returns a Target that needs nothing while its object does not exist.
func IfPresent(target Target) Target { return ifPresent{target} }

type ifPresent struct{ Target }

// Read implements Target.
func (p ifPresent) Read(ctx context.Context) (Held, error) {
	held, err := p.Target.Read(ctx)
	if errors.Is(err, ErrMissing) {
		return Held{}, nil
	}
	return held, err
}

// Read implements Target.
func (o object) Read(ctx context.Context) (Held, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(o.kind)
	err := o.client.Get(ctx, client.ObjectKey{Name: o.name}, found)
	if apierrors.IsNotFound(err) {
		return Held{}, fmt.Errorf("%s %s: %w", o.kind.Kind, o.name, ErrMissing)
	}
	if err != nil {
		return Held{}, fmt.Errorf("%s %s: %w", o.kind.Kind, o.name, err)
	}
	places, err := o.places(found.Object)
	if err != nil {
		return Held{}, fmt.Errorf("%s %s: %w", o.kind.Kind, o.name, err)
	}
	held := Held{Write: func(ctx context.Context, trust Trust) error {
		for _, place := range places {
			place["caBundle"] = base64.StdEncoding.EncodeToString(trust.Bundle)
			if trust.Path != "" {
				setPath(place, trust.Path)
			}
		}
		if err := conflict(o.client.Update(ctx, found)); err != nil {
			return fmt.Errorf("%s %s: %w", o.kind.Kind, o.name, err)
		}
		return nil
	}}
	for _, place := range places {
		text, _ := place["caBundle"].(string)
		bundle, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			bundle = nil // not written by us, so write it again
		}
		held.Bundles, held.Paths = append(held.Bundles, bundle), append(held.Paths, pathOf(place))
	}
	return held, nil
}

// pathOf returns the path of a clientConfig: that of its service or of its URL.
func pathOf(place map[string]any) string {
	if service, found := place["service"].(map[string]any); found {
		path, _ := service["path"].(string)
		return path
	}
	text, _ := place["url"].(string)
	at, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return at.Path
}

func setPath(place map[string]any, path string) {
	if service, found := place["service"].(map[string]any); found {
		service["path"] = path
		return
	}
	text, _ := place["url"].(string)
	if at, err := url.Parse(text); err == nil && at.Host != "" {
		at.Path = path
		place["url"] = at.String()
	}
}
