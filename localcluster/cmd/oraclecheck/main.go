// Command oraclecheck judges one plan with kube-scheduler's filter plugins (package oracle). It reads the cluster and
// the plan as JSON from standard input (see question), and writes the answer as JSON to standard output. It exits with
// 0 for every answer, and with another code if the question makes no sense.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// question is a cluster and a plan, in the terms of oracle.Cluster and oracle.Plan. Pods are named by namespace/name.
type question struct {
	Namespaces []*corev1.Namespace `json:"namespaces"`
	Nodes      []*corev1.Node      `json:"nodes"`
	Pods       []*corev1.Pod       `json:"pods"`
	Launched   []*corev1.Node      `json:"launched"`
	Placed     map[string]string   `json:"placed"` // pod → node
	Order      []string            `json:"order"`
}

// answer lists the obstacles, one line for each pod that cannot be bound.
type answer struct {
	Checked    int      `json:"checked"` // pods
	Violations []string `json:"violations"`
}

func main() {
	if err := check(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oraclecheck:", err)
		os.Exit(1)
	}
}

func check(ctx context.Context, in io.Reader, out io.Writer) error {
	var q question
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return fmt.Errorf("reading the question: %w", err)
	}
	p := oracle.Plan{Launched: q.Launched, Placed: map[types.NamespacedName]string{}}
	for pod, node := range q.Placed {
		name, err := named(pod)
		if err != nil {
			return fmt.Errorf("placed: %w", err)
		}
		p.Placed[name] = node
	}
	for _, pod := range q.Order {
		name, err := named(pod)
		if err != nil {
			return fmt.Errorf("order: %w", err)
		}
		p.Order = append(p.Order, name)
	}
	judge, err := oracle.New(ctx)
	if err != nil {
		return err
	}
	violations, err := judge.Check(ctx, oracle.Cluster{Namespaces: q.Namespaces, Nodes: q.Nodes, Pods: q.Pods}, p)
	if err != nil {
		return err
	}
	a := answer{Checked: len(p.Placed), Violations: []string{}}
	for _, v := range violations {
		a.Violations = append(a.Violations, v.String())
	}
	return json.NewEncoder(out).Encode(a)
}

func named(text string) (types.NamespacedName, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("pod %q; want namespace/name", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
