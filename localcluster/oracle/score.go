package oracle

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// Scorer returns the node scores of kube-scheduler's own plugins (K-60): those of the default profile, with its
// weights, without images, volumes and devices. It is not safe for concurrent use. Use [NewScorer].
type Scorer struct {
	framework        framework.Framework
	state            *state
	namespaces, sets cache.Indexer
}

// scorers returns the score plugins.
func scorers() []string {
	return []string{
		names.TaintToleration, names.NodeAffinity, names.NodeResourcesFit, names.NodeResourcesBalancedAllocation,
		names.PodTopologySpread, names.InterPodAffinity,
	}
}

// NewScorer sets up the plugins. Their background work ends with ctx.
func NewScorer(ctx context.Context) (*Scorer, error) {
	own, err := profile()
	if err != nil {
		return nil, err
	}
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, arguments := range own.PluginConfig {
		known[arguments.Name] = true
	}
	for _, plugin := range defaults.Profiles[0].Plugins.MultiPoint.Enabled {
		if slices.Contains(scorers(), plugin.Name) {
			own.Plugins.PreScore.Enabled = append(own.Plugins.PreScore.Enabled, config.Plugin{Name: plugin.Name})
			own.Plugins.Score.Enabled = append(own.Plugins.Score.Enabled, plugin)
		}
	}
	for _, arguments := range defaults.Profiles[0].PluginConfig {
		if slices.Contains(scorers(), arguments.Name) && !known[arguments.Name] {
			own.PluginConfig = append(own.PluginConfig, arguments)
		}
	}
	s := newState()
	factory := informers.NewSharedInformerFactory(nil, 0)
	scorer := &Scorer{
		state: s, namespaces: factory.Core().V1().Namespaces().Informer().GetIndexer(),
		sets: factory.Apps().V1().ReplicaSets().Informer().GetIndexer(),
	}
	if scorer.framework, err = frameworkOf(ctx, s, own, factory); err != nil {
		return nil, fmt.Errorf("setting up kube-scheduler's plugins: %w", err)
	}
	return scorer, nil
}

// Scores returns the scores of the nodes that take the pod, by name. sets are the ReplicaSets that own pods.
func (s *Scorer) Scores(ctx context.Context, c Cluster, sets []*appsv1.ReplicaSet,
	pod *corev1.Pod) (map[string]int64, error) {
	if err := fill(s.namespaces, c.Namespaces); err != nil {
		return nil, err
	}
	if err := fill(s.sets, sets); err != nil {
		return nil, err
	}
	s.state.clear()
	for _, node := range c.Nodes {
		if err := s.state.addNode(node); err != nil {
			return nil, err
		}
	}
	for _, other := range c.Pods {
		if err := s.state.addRunning(other); err != nil {
			return nil, err
		}
	}
	s.state.restart()
	cycle := framework.NewCycleState()
	if _, status, _ := s.framework.RunPreFilterPlugins(ctx, cycle, pod); !status.IsSuccess() && !status.IsRejected() {
		return nil, status.AsError()
	}
	var fitting []fwk.NodeInfo
	for _, node := range s.state.now {
		if s.framework.RunFilterPlugins(ctx, cycle, pod, node).IsSuccess() {
			fitting = append(fitting, node)
		}
	}
	scores := map[string]int64{}
	if len(fitting) == 0 {
		return scores, nil
	}
	if status := s.framework.RunPreScorePlugins(ctx, cycle, pod, fitting); !status.IsSuccess() {
		return nil, status.AsError()
	}
	all, status := s.framework.RunScorePlugins(ctx, cycle, pod, fitting)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	for _, node := range all {
		scores[node.Name] = node.TotalScore
	}
	return scores, nil
}

// fill replaces the content of a store.
func fill[T any](store cache.Indexer, objects []T) error {
	list := make([]any, len(objects))
	for i, object := range objects {
		list[i] = object
	}
	return store.Replace(list, "")
}
