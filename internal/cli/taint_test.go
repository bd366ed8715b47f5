package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// mark stands where nobody may look: in secrets, environment variables, foreign annotations, image names and
// arguments.
const mark = "s3cr3t-m4rk"

// marked is a cluster in which each such field holds the mark. Every command has something to say about it: pods that
// wait, run, are malformed or want what does not exist; nodes that stay; claims that fail; pools that launch nothing.
const marked = `
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop, annotations: {NOTE}}
data: {password: BASE64}
stringData: {token: MARK}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: joiner-disruption, namespace: kube-system, annotations: {NOTE}}
data: {paused: "true", reason: release, until: "2999-01-01T00:00:00Z", other: MARK}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {NOTE}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default, annotations: {NOTE}}
spec:
  role: nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
  userData: "export TOKEN=MARK"
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, annotations: {NOTE}}
spec:
  hardLimits: {nodes: "1"}
  template:
    metadata: {annotations: {NOTE}}
    spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-a, annotations: {NOTE}, creationTimestamp: "2026-01-01T00:00:00Z",
  labels: {karpenter.sh/nodepool: default}}
spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}
status:
  providerID: aws:///us-east-1a/i-1
  nodeName: n1
  capacity: {cpu: "4", memory: 8Gi, pods: "64"}
  conditions:
    - {type: Launched, status: "True", reason: A, lastTransitionTime: "2026-01-01T00:00:00Z"}
    - {type: Registered, status: "True", reason: A, lastTransitionTime: "2026-01-01T00:00:00Z"}
    - {type: Initialized, status: "True", reason: A, lastTransitionTime: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations: {karpenter.sh/do-not-disrupt: "true", NOTE}
  labels:
    karpenter.sh/nodepool: default
    kubernetes.io/hostname: n1
    karpenter.sh/registered: "true"
    karpenter.sh/initialized: "true"
    node.kubernetes.io/instance-type: m5.xlarge
spec: {providerID: "aws:///us-east-1a/i-1"}
status:
  images: [{names: ["MARK/app:1"]}]
  allocatable: {cpu: "4", memory: 8Gi, pods: "64"}
  capacity: {cpu: "4", memory: 8Gi, pods: "64"}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: shop, annotations: {NOTE}}
spec: {nodeName: n1, CONTAINERS}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: shop, annotations: {NOTE}}
spec: {nodeSelector: {team: red}, CONTAINERS}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
---
apiVersion: v1
kind: Pod
metadata: {name: volumes, namespace: shop, annotations: {NOTE}}
spec: {volumes: [{name: s, secret: {secretName: db, items: [{key: MARK, path: MARK}]}},
  {name: d, persistentVolumeClaim: {claimName: missing}}], CONTAINERS}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, annotations: {NOTE}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, annotations: {NOTE}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {NOTE}}
    spec: {CONTAINERS}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log, namespace: kube-system, annotations: {NOTE}}
spec:
  selector: {matchLabels: {app: log}}
  template:
    metadata: {labels: {app: log}, annotations: {NOTE}}
    spec: {CONTAINERS}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop, annotations: {NOTE}}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
`

func markedFile(t *testing.T) string {
	t.Helper()
	containers :=
		`initContainers: [{name: init, image: MARK/init:1, args: [MARK]}], containers: [{name: main, image: "MARK/app:1",
    command: [MARK], args: ["--password=MARK"], workingDir: /MARK, env: [{name: TOKEN, value: MARK},
    {name: REF, valueFrom: {secretKeyRef: {name: db, key: MARK}}}], lifecycle: {preStop: {exec: {command: [MARK]}}},
    livenessProbe: {httpGet: {path: /MARK, port: 80, httpHeaders: [{name: A, value: MARK}]}},
    resources: {requests: {cpu: "9"}}}]`
	text := strings.NewReplacer("CONTAINERS", containers, "NOTE",
		`example.com/note: MARK, kubectl.kubernetes.io/last-applied-configuration: MARK`).Replace(marked)
	text = strings.ReplaceAll(text, "BASE64", base64.StdEncoding.EncodeToString([]byte(mark)))
	if n := strings.Count(text, "MARK"); n < 90 {
		t.Fatalf("the mark stands in %d places; it is to stand everywhere", n)
	}
	return file(t, "marked.yaml", strings.ReplaceAll(text, "MARK", mark))
}

// TestU40_WhatNobodyMayKnowIsNowhere: the mark is not in a dump, in no form of explain, simulate, status and replay,
// and not in what a console gets.
func TestU40_WhatNobodyMayKnowIsNowhere(t *testing.T) {
	t.Parallel()
	path, packed := markedFile(t), filepath.Join(t.TempDir(), "dump.gz")
	looks := func(what, text string) {
		t.Helper()
		if strings.Contains(text, mark) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(mark))) {
			t.Errorf("%s tells the mark:\n%s", what, text)
		}
	}
	for _, how := range []string{"none", "names", "all"} {
		code, out, failures := ran(t, "", "dump", "-f", path, "--catalogue", "default", "--redact", how)
		if code != cli.CodeFine {
			t.Fatalf("exit %d, %s", code, failures)
		}
		text := lines(t, []byte(out))
		if how == "none" && !strings.Contains(text, `"name":"waits"`) {
			t.Errorf("the cluster is not in the dump:\n%s", text)
		}
		looks("dump "+how, text+failures)
	}
	if code, _, failures := ran(t, "", "dump", "-f", path, "--catalogue", "default", "--redact", "none", "-o",
		packed); code != cli.CodeFine {
		t.Fatal(failures)
	}
	d := understood(t, packed)
	looks("the read model", shownByConsole(t, readmodel.Input{Snapshot: d.Snapshot, Terms: d.Terms,
		Plan: engine.Launches(d.Snapshot), Stays: readmodel.StaysOf(d.Snapshot, d.Terms)}))
	for want, args := range map[string][]string{
		"Paused":      {"status", "-f", path},
		"capacity":    {"top", "-f", path},
		"waits":       {"explain", "pod", "shop/waits", "-f", path, "--all"},
		"missing":     {"explain", "pod", "shop/volumes", "-f", path},
		"runs":        {"explain", "pod", "shop/runs", "-f", path},
		"n1":          {"explain", "node", "n1", "-f", path, "--all"},
		"default":     {"explain", "nodepool", "default", "-f", path},
		"default-a":   {"explain", "nodeclaim", "default-a", "-f", path},
		"web":         {"explain", "deployment", "shop/web", "-f", path, "--all"},
		"log":         {"explain", "daemonset", "kube-system/log", "-f", path},
		"shop/web":    {"simulate", "-f", path},
		"shop":        {"simulate", "-f", path, "--change", path, "--remove-node", "n1"},
		"shop/waits ": {"replay", packed, "--explain", "pod/shop/waits"},
	} {
		if args[0] != "replay" {
			args = append(args, "--catalogue", "default")
		}
		for _, form := range []string{"wide", "json", "yaml"} {
			code, out, failures := ran(t, "", append(args, "-o", form)...)
			if code == cli.CodeFailed ||
				form == "wide" && !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
				t.Errorf("%v: exit %d, %s\n%s", args, code, failures, out)
			}
			looks(strings.Join(args, " ")+" -o "+form, out+failures)
		}
	}
}

// shownByConsole is all that a console can ask for.
func shownByConsole(t *testing.T, in readmodel.Input) string {
	t.Helper()
	m := readmodel.Of(in)
	all := []any{m}
	add := func(what any, there bool) {
		t.Helper()
		if !there {
			t.Errorf("%+v is not there", what)
		}
		all = append(all, what)
	}
	for _, node := range m.Nodes {
		found, there := readmodel.NodeOf(in, node.ID, 0)
		add(found, there)
	}
	for _, pool := range m.Pools {
		found, there := readmodel.PoolOf(in, pool.Name)
		add(found, there)
	}
	waiting := readmodel.WaitingPods(in, "", "", "", "", 0)
	add(waiting, len(waiting.Pods) > 0)
	for _, pod := range waiting.Pods {
		found, there := readmodel.PodOf(in, pod.Namespace, pod.Name)
		add(found, there)
	}
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
