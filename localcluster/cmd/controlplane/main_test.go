package main

import (
	"slices"
	"testing"
)

func TestTheComponentIsChosenByProgramNameThenByFirstArgument(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		argv []string
		want []string // the component's argv; nil: none is chosen
	}{
		{[]string{"/tmp/bin/kube-apiserver", "--v=1"}, []string{"kube-apiserver", "--v=1"}},
		{[]string{"/tmp/bin/controlplane", "etcd", "--name=x"}, []string{"etcd", "--name=x"}},
		{[]string{"kubectl", "etcd"}, []string{"kubectl", "etcd"}},
		{[]string{"controlplane", "/tmp/etcd"}, nil},
		{[]string{"controlplane", "kubelet"}, nil},
		{[]string{"controlplane"}, nil},
		{nil, nil},
	} {
		chosen, args, ok := choose(test.argv)
		if ok != (test.want != nil) || !slices.Equal(args, test.want) {
			t.Errorf("choose(%q) = %q, %t; want %q", test.argv, args, ok, test.want)
		}
		if ok && chosen.name != test.want[0] {
			t.Errorf("choose(%q) is %s, want %s", test.argv, chosen.name, test.want[0])
		}
	}
}

func TestTheEmbeddedStagesAreTwoForNodesAndThreeForPods(t *testing.T) {
	t.Parallel()
	stages, err := fakeKubeletStages()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for ref, list := range stages {
		got[ref.Kind] = len(list)
	}
	if len(got) != 2 || got["Node"] != 2 || got["Pod"] != 3 {
		t.Errorf("stages by kind: %v", got)
	}
}

func TestKWOKFlagsAreChecked(t *testing.T) {
	t.Parallel()
	for _, wrong := range []kwokOptions{
		{parallelism: 1},
		{kubeconfig: "f"},
		{kubeconfig: "f", parallelism: 1, address: "127.0.0.1:1"},
	} {
		if wrong.validate() == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
	if err := (kwokOptions{kubeconfig: "f", parallelism: 1}).validate(); err != nil {
		t.Error(err)
	}
}
