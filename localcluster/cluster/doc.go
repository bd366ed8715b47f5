// Package cluster starts a real Kubernetes control plane on this machine,
// without containers: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and KWOK's fake kubelets, each in a process of its own. It is
// for demos, end-to-end tests and benchmarks.
//
// The programs come from one binary, cmd/controlplane, which `make
// bin/controlplane` builds. This package only runs it: it depends on client-go,
// never on k8s.io/kubernetes, so that a test which uses it links in seconds.
//
// What it promises:
//
//   - Nothing is shared between two clusters: each has its own ports,
//     certificates and directory, and all of its ports are on 127.0.0.1 and
//     ask for a certificate of that cluster. Any number may start at once.
//   - Nothing survives: Stop ends every process and removes the directory, and
//     on Linux the kernel ends the processes when their parent dies, even by
//     SIGKILL.
//   - Nothing hangs: every wait has a bound, and a component that does not
//     become ready is reported with the last lines of its log.
//
// Nodes are objects with the annotation of FakeNodeAnnotation: whoever creates
// one gets a Ready node from KWOK, the real scheduler binds pods to it, and
// KWOK reports them as running. State kept in a named directory can be started
// again.
//
// Start at Start. The order of reading is cluster.go (life of a cluster),
// component.go (what is started with which flags), process.go (processes and
// their end), pki.go and identity.go (who may talk to whom), ports.go, audit.go.
package cluster
