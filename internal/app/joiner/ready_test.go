package joiner

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// unlisted are informers of which those of one kind are never filled, as when there is no right to list it.
type unlisted struct {
	*informertest.FakeInformers
	kind string
}

func (u *unlisted) GetInformer(ctx context.Context, object client.Object,
	options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := u.FakeInformers.GetInformer(ctx, object, options...)
	if serve.KindOf(object) == u.kind {
		return never{informer}, err
	}
	return informer, err
}

type never struct{ cache.Informer }

func (never) HasSynced() bool { return false }

// U-13: a process that waits for a kind which it may not list is not ready. It names the kind, whether or not the feed
// needs it.
func TestAKindThatMayNotBeListedShows(t *testing.T) {
	t.Parallel()
	scheme, err := newScheme(nil)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{
		"": "", "VolumeAttachment": "VolumeAttachment", "Service": "Service", "Secret": "Secret",
		"ConfigMap": "ConfigMap",
	} {
		p := &process{synced: &serve.Syncs{}}
		informers := &unlisted{&informertest.FakeInformers{Scheme: scheme}, kind}
		plugged := []plugin.Parts{{Class: &corev1.Secret{}, Reads: []client.Object{&corev1.Service{}}}}
		controllers := []kube.Controller{{Name: "one", Watches: []kube.Watch{{Object: &corev1.ConfigMap{}}}}}
		if err := connect(t.Context(), informers, &Feed{store: world.New(world.Config{})}, plugged, controllers,
			p.synced); err != nil {
			t.Fatal(err)
		}
		if text := p.why(); want == "" && text != "" || !strings.HasSuffix(text, want) {
			t.Errorf("without the right to list %q it says %q", kind, text)
		}
	}
}
