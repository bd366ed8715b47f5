package e2e

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

var (
	claimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	podResource   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// follow calls take for all objects that a label selector picks, as Added, and then for every event about them until
// the test ends, one by one. So no moment is missed. A hole in the watch fails the test.
func (r *testRig) follow(resource schema.GroupVersionResource, selector string,
	take func(watch.EventType, *unstructured.Unstructured)) {
	r.t.Helper()
	config, err := r.Cluster.RESTConfig("admin")
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := dynamic.NewForConfig(config)
	if err != nil {
		r.t.Fatal(err)
	}
	options := metav1.ListOptions{LabelSelector: selector}
	list, err := all.Resource(resource).List(r.t.Context(), options)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range list.Items {
		take(watch.Added, &list.Items[i])
	}
	options.ResourceVersion = list.GetResourceVersion()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- followOn(ctx, all.Resource(resource), options, take) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the watch has a hole: %v", err)
		}
	})
}

// followOn watches, and goes on from the last event whenever the server ends the stream.
func followOn(ctx context.Context, objects dynamic.ResourceInterface, options metav1.ListOptions,
	take func(watch.EventType, *unstructured.Unstructured)) error {
	options.AllowWatchBookmarks = true
	for ctx.Err() == nil {
		stream, err := objects.Watch(ctx, options)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for event := range stream.ResultChan() {
			if event.Type == watch.Error && ctx.Err() != nil {
				return nil // it is our own end
			}
			object, is := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Error || !is {
				return fmt.Errorf("%v", event.Object)
			}
			options.ResourceVersion = object.GetResourceVersion()
			if event.Type != watch.Bookmark {
				take(event.Type, object)
			}
		}
	}
	return nil
}
