package apiserver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admit gives a new pod the defaults of an API server. Requests default to limits. Then the LimitRanges of its
// namespace fill in what containers leave out. Templates are left alone.
func (s *Server) admit(pod *corev1.Pod) {
	if pod.Status.Phase == "" {
		pod.Status.Phase = corev1.PodPending
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			r := &list[i].Resources
			r.Requests = filled(r.Requests, r.Limits)
		}
	}
	s.All(&corev1.LimitRange{}, func(o client.Object) {
		if o.GetNamespace() != pod.Namespace {
			return
		}
		for _, item := range o.(*corev1.LimitRange).Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
				for i := range list {
					r := &list[i].Resources
					r.Limits, r.Requests = filled(r.Limits, item.Default), filled(r.Requests, item.DefaultRequest)
				}
			}
		}
	})
}

// complete gives a LimitRange the defaults of its API. The default limit is the highest allowed; the default request
// is that limit, or else the lowest allowed.
func complete(limits *corev1.LimitRange) {
	for i := range limits.Spec.Limits {
		if item := &limits.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			item.Default = filled(item.Default, item.Max)
			item.DefaultRequest = filled(item.DefaultRequest, item.Default)
			item.DefaultRequest = filled(item.DefaultRequest, item.Min)
		}
	}
}

// filled returns list with the resources that it lacks from more; it does not change list.
func filled(list, more corev1.ResourceList) corev1.ResourceList {
	missing := slices.DeleteFunc(names(more), func(name corev1.ResourceName) bool { _, has := list[name]; return has })
	if len(missing) == 0 {
		return list
	}
	full := list.DeepCopy()
	if full == nil {
		full = corev1.ResourceList{}
	}
	for _, name := range missing {
		full[name] = more[name].DeepCopy()
	}
	return full
}

func names(list corev1.ResourceList) []corev1.ResourceName {
	sorted := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		sorted = append(sorted, name)
	}
	slices.SortFunc(sorted, func(a, b corev1.ResourceName) int { return strings.Compare(string(a), string(b)) })
	return sorted
}
