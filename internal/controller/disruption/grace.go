package disruption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file is the grace of the first start (K-27). If Joiner is new in a cluster and another program made its
// NodeClaims, nothing is removed voluntarily for a while. So whoever switched can first see what is due. The grace is
// a pause that ends by itself and, unlike other pauses, also stops trimming. A ConfigMap records it, so that a restart
// neither restarts nor ends it.

// grace returns why the first start holds, and until when; "" if it does not. It asks the API server each round until
// the grace is over, and then never again.
func (c *Controller) grace(ctx context.Context, r round) (why string, until time.Time, err error) {
	if c.config.Grace <= 0 || c.memory.graceOver() {
		return "", until, nil
	}
	var object corev1.ConfigMap
	key := types.NamespacedName{Namespace: c.config.Namespace, Name: translate.TakeoverName}
	switch err := c.config.Live.Get(ctx, key, &object); {
	case apierrors.IsNotFound(err):
		if err := c.firstStart(ctx, r, &object); err != nil {
			return "", until, err
		}
	case err != nil:
		return "", until, fmt.Errorf("reading what the first start found, ConfigMap %s: %w", key, err)
	}
	g := translate.GraceOf(object.Data, c.config.Now())
	for _, fault := range g.Faults {
		c.config.Events.Event(&object, event.Warning, event.DisruptionPaused, fault)
	}
	c.memory.foundGrace(g.On, g.Until)
	if !g.On {
		return "", until, nil
	}
	return g.By(key.String()), g.Until, nil
}

// firstStart reads from the API server whose NodeClaims exist, and records the resulting grace.
func (c *Controller) firstStart(ctx context.Context, r round, object *corev1.ConfigMap) error {
	var claims karpenterv1.NodeClaimList
	if err := c.config.Live.List(ctx, &claims); err != nil {
		return fmt.Errorf("listing NodeClaims for the first start: %w", err)
	}
	others := 0
	for i := range claims.Items {
		if claim := &claims.Items[i]; c.config.Fleet.OwnsClaim(claim) && !translate.MadeHere(claim) {
			others++
		}
	}
	length := c.config.Grace
	if others == 0 { // nothing to take over
		length = 0
	}
	now := c.config.Now()
	*object = corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.config.Namespace, Name: translate.TakeoverName},
		Data:       translate.GraceData(now, now.Add(length), others),
	}
	held := dueAtFirst(r)
	if length > 0 && len(held) > 0 {
		object.Data[translate.TakeoverHeld] = strings.Join(held, "\n")
	}
	if err := c.config.Client.Create(ctx, object); err != nil {
		if apierrors.IsAlreadyExists(err) { // another process was first: its record counts
			key := client.ObjectKeyFromObject(object)
			return c.config.Live.Get(ctx, key, object)
		}
		return fmt.Errorf("writing what the first start found, ConfigMap %s/%s: %w", object.Namespace, object.Name,
			err)
	}
	if length > 0 {
		c.config.Log.Info(
			"first start on a cluster with nodes of another program: nothing is removed voluntarily for a while",
			"nodeclaims", others, "held", held, "until", now.Add(length).UTC().Format(time.RFC3339),
			"configMap", object.Namespace+"/"+object.Name)
	}
	return nil
}

// dueAtFirst returns what the grace holds back at the first start: a line for each pool where anything is due.
func dueAtFirst(r round) (lines []string) {
	for _, pool := range r.snapshot.Pools {
		if r.pools[pool.Name] == nil || pool.Held {
			continue
		}
		var drifted, empty int64
		for _, node := range r.snapshot.Nodes {
			if node.Pool != pool.Name || node.Deleting {
				continue
			}
			if node.Drifted {
				drifted++
			} else if engine.IsEmpty(node, r.now.Unix()) {
				empty++
			}
		}
		_, leaving := engine.Leaving(r.snapshot, pool.Name)
		above := int64(0)
		if !pool.Dormant {
			above = max(0, pool.Limits.Excess(pool.Kept(), pool.Used.Nodes, int64(len(leaving))))
		}
		var parts []string
		for _, due := range []struct {
			nodes int64
			what  string
		}{{drifted, "drifted"}, {empty, "empty"}, {above, "above its limit or its replicas"}} {
			if due.nodes > 0 {
				parts = append(parts, fmt.Sprint(due.nodes, " ", due.what))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("NodePool %s, %d nodes: %s", pool.Name, pool.Used.Nodes,
				strings.Join(parts, ", ")))
		}
	}
	slices.Sort(lines)
	return lines
}

// GraceLeft returns how long the grace of the first start still lasts, as of the last round; 0 if there is none.
func (c *Controller) GraceLeft() time.Duration {
	return max(0, c.memory.graceEnds().Sub(c.config.Now()))
}
