// Package oracle checks the plans of both sides with kube-scheduler's own filter plugins (P-21). The plugins are
// linked into oraclecheck, a program of the module localcluster. It runs as a process of its own, so that this module
// does not depend on the scheduler.
package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/bench/internal/outcome"
	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// question and answer are those of oraclecheck, see localcluster/cmd/oraclecheck/main.go.
type question struct {
	Namespaces []*corev1.Namespace `json:"namespaces"`
	Nodes      []*corev1.Node      `json:"nodes"`
	Pods       []*corev1.Pod       `json:"pods"`
	Launched   []*corev1.Node      `json:"launched"`
	Placed     map[string]string   `json:"placed"`
	Order      []string            `json:"order"`
}

type answer struct {
	Checked    int      `json:"checked"`
	Violations []string `json:"violations"`
}

// ErrTooLong is the error of a plan that was not judged within the limit.
var ErrTooLong = errors.New("the plan was not judged in time")

// Check binds each pod of a plan to its planned node, in some order that kube-scheduler admits. It returns a text for
// each pod that cannot be bound: none for a valid plan. program is the path of oraclecheck. Each launch becomes the
// cheapest node that its claim allows. After limit, Check gives up with [ErrTooLong].
func Check(program string, s scenario.Scenario, o outcome.Outcome, limit time.Duration) ([]string, error) {
	q, err := ask(s, o)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, program)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), &out, os.Stderr
	if err := command.Run(); ctx.Err() != nil {
		return nil, ErrTooLong
	} else if err != nil {
		return nil, fmt.Errorf("asking %s: %w", program, err)
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("reading what %s says: %w", program, err)
	}
	if a.Checked != o.Placed() {
		return nil, fmt.Errorf("%s checked %d pods of %d", program, a.Checked, o.Placed())
	}
	return a.Violations, nil
}

func ask(s scenario.Scenario, o outcome.Outcome) (question, error) {
	q := question{
		Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}}},
		Placed:     map[string]string{}, Order: o.Order,
	}
	for i, l := range o.Launches {
		node, err := scenario.Node{Name: fmt.Sprintf("planned-%06d", i), Type: l.Type, Zone: l.Zone,
			CapacityType: l.CapacityType}.Object(s.Catalog)
		if err != nil {
			return q, err
		}
		q.Launched = append(q.Launched, node)
		if err := place(q.Placed, node.Name, l.Pods); err != nil {
			return q, err
		}
	}
	for node, pods := range o.Existing {
		if err := place(q.Placed, node, pods); err != nil {
			return q, err
		}
	}
	for _, pod := range s.Pending {
		if _, placed := q.Placed[pod.Namespace+"/"+pod.Name]; placed {
			q.Pods = append(q.Pods, pod)
		}
	}
	return q, addNodes(&q, s, o)
}

func place(placed map[string]string, node string, pods []string) error {
	for _, pod := range pods {
		if other, twice := placed[pod]; twice {
			return fmt.Errorf("the plan places pod %s twice: on %s and on %s", pod, other, node)
		}
		placed[pod] = node
	}
	return nil
}

// addNodes adds the existing nodes, with their pods. If no pod is tied to another one, it leaves out nodes that get no
// pod: they cannot change the answer.
func addNodes(q *question, s scenario.Scenario, o outcome.Outcome) error {
	all := slices.ContainsFunc(q.Pods, tied)
	for _, n := range s.Nodes {
		all = all || slices.ContainsFunc(n.Pods, tied)
	}
	for _, n := range s.Nodes {
		if !all && len(o.Existing[n.Name]) == 0 {
			continue
		}
		node, err := n.Object(s.Catalog)
		if err != nil {
			return err
		}
		q.Nodes, q.Pods = append(q.Nodes, node), append(q.Pods, n.Pods...)
	}
	return nil
}

// tied reports whether a pod has constraints on other pods.
func tied(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return len(pod.Spec.TopologySpreadConstraints) > 0 ||
		a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
}

// Find returns an error that says how to build the program when it is not there.
func Find(program string) error {
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("plans cannot be checked: %w; build the program with make oraclecheck, or give -oracle=none",
			err)
	}
	return nil
}
