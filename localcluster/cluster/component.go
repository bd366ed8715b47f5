package cluster

import (
	"crypto/tls"
	"path/filepath"
	"strconv"
	"time"
)

// Component is one of the programs that make up a cluster.
type Component string

const (
	// Etcd keeps the state.
	Etcd Component = "etcd"
	// APIServer is kube-apiserver.
	APIServer Component = "kube-apiserver"
	// ControllerManager is kube-controller-manager.
	ControllerManager Component = "kube-controller-manager"
	// Scheduler is kube-scheduler.
	Scheduler Component = "kube-scheduler"
	// KWOK is the fake kubelet of every node with FakeNodeAnnotation.
	KWOK Component = "kwok"
)

const (
	serviceCIDR = "10.96.0.0/16"
	// clientQPS and clientBurst (requests per second, requests) replace the
	// defaults of 20 to 100, at which a scenario of 2,000 pods would measure
	// the throttle of the components.
	clientQPS   = 1000
	clientBurst = 2000
	// etcdQuotaBytes lets a long benchmark write more than the default 2 GiB.
	etcdQuotaBytes = 8 << 30
	// nodeSchedulingPlugin and nodeSchedulingGate are names of package nodescheduling/plugin. That package is not
	// imported: it depends on all of Kubernetes, and this package only starts a binary.
	nodeSchedulingPlugin = "scheduling.openshift.io/NodeSchedulingPolicy"
	nodeSchedulingGate   = "OpenShiftNodeSchedulingPolicy"
	// auditMaxMegabytes keeps a whole run in one audit file.
	auditMaxMegabytes = 100_000
)

// startOrder lists the components so that each comes after those it needs.
// They are stopped in the reverse order.
func startOrder() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, KWOK}
}

// sharesPorts says whether the component's flags let holdPorts hold its ports.
func (c Component) sharesPorts() bool { return c != KWOK }

// ports lists the ports that the component listens on.
func (c Component) ports() []portName {
	switch c {
	case Etcd:
		return []portName{etcdClientPort, etcdPeerPort}
	case APIServer:
		return []portName{apiServerPort}
	case ControllerManager:
		return []portName{controllerManagerPort}
	case Scheduler:
		return []portName{schedulerPort}
	default:
		return []portName{kwokPort}
	}
}

// grace is how long the component may take to end before it is killed. The API
// server waits for open requests.
func (c Component) grace() time.Duration {
	if c == APIServer {
		return 10 * time.Second
	}
	return 5 * time.Second
}

// probe returns the address that answers 200 once the component is ready, and
// the TLS settings for asking.
func (s *setup) probe(c Component) (string, *tls.Config) {
	switch c {
	case Etcd:
		return s.ports.url(etcdClientPort, "/readyz"), s.etcdTLS
	case APIServer:
		return s.ports.url(apiServerPort, "/readyz"), s.userTLS
	case ControllerManager:
		return s.ports.url(controllerManagerPort, "/healthz"), s.userTLS
	case Scheduler:
		return s.ports.url(schedulerPort, "/readyz"), s.userTLS
	default:
		return s.ports.url(kwokPort, "/healthz"), s.userTLS
	}
}

// args returns the component's flags, the caller's extra ones last.
func (s *setup) args(c Component) []string {
	var args []string
	switch c {
	case Etcd:
		args = s.etcdArgs()
	case APIServer:
		args = s.apiServerArgs()
	case ControllerManager:
		args = s.controllerManagerArgs()
	case Scheduler:
		args = s.clientArgs(schedulerIdentity, schedulerPort)
	default:
		args = s.kwokArgs()
	}
	return append(args, s.options.ExtraArgs[c]...)
}

func (s *setup) etcdArgs() []string {
	client, peer := s.ports.url(etcdClientPort, ""), s.ports.url(etcdPeerPort, "")
	cert, key, ca := s.pki.cert("etcd"), s.pki.key("etcd"), s.pki.etcd.path
	return []string{
		"--name=local",
		"--data-dir=" + filepath.Join(s.options.Dir, etcdDir),
		"--log-level=warn",
		// A crash of the machine may lose the last writes; a crash of etcd
		// does not. Waiting for the disk would dominate what is measured.
		"--unsafe-no-fsync",
		"--socket-reuse-port",
		"--quota-backend-bytes=" + strconv.Itoa(etcdQuotaBytes),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=local=" + peer,
		"--cert-file=" + cert, "--key-file=" + key,
		"--client-cert-auth", "--trusted-ca-file=" + ca,
		"--peer-cert-file=" + cert, "--peer-key-file=" + key,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca,
	}
}

func (s *setup) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + s.ports.url(etcdClientPort, ""),
		"--etcd-cafile=" + s.pki.etcd.path,
		"--etcd-certfile=" + s.pki.cert("etcd-client"),
		"--etcd-keyfile=" + s.pki.key("etcd-client"),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(s.ports[apiServerPort]),
		"--permit-port-sharing",
		// The endpoints of the service "kubernetes" may not be loopback.
		"--endpoint-reconciler-type=none",
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--client-ca-file=" + s.pki.users.path,
		"--requestheader-client-ca-file=" + s.pki.frontProxy.path,
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--tls-cert-file=" + s.pki.cert("serving"),
		"--tls-private-key-file=" + s.pki.key("serving"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.pki.saPath,
		"--service-account-signing-key-file=" + s.pki.saPath,
	}
	if s.options.Audit {
		args = append(args,
			"--audit-policy-file="+filepath.Join(s.options.Dir, auditPolicyFile),
			"--audit-log-path="+filepath.Join(s.options.Dir, auditLogFile),
			"--audit-log-maxsize="+strconv.Itoa(auditMaxMegabytes),
		)
	}
	if s.options.NodeSchedulingPolicy != "" {
		args = append(args,
			"--enable-admission-plugins="+nodeSchedulingPlugin,
			"--feature-gates="+nodeSchedulingGate+"=true",
			"--admission-control-config-file="+filepath.Join(s.options.Dir, admissionFile),
		)
	}
	return args
}

func (s *setup) controllerManagerArgs() []string {
	return append(s.clientArgs(controllerManagerIdentity, controllerManagerPort),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+s.pki.saPath,
		"--root-ca-file="+s.pki.users.path,
		// Fake kubelets of a large fleet on a small machine renew their leases late. No node should be lost for that.
		"--node-monitor-grace-period=10m",
		// These need a cloud provider.
		"--controllers=*,-cloud-node-lifecycle-controller,-node-route-controller,-service-lb-controller",
	)
}

// clientArgs returns what the controller manager and the scheduler share.
func (s *setup) clientArgs(identity string, port portName) []string {
	kubeconfig := s.kubeconfigPath(identity)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(s.ports[port]),
		"--permit-port-sharing",
		"--tls-cert-file=" + s.pki.cert("serving"),
		"--tls-private-key-file=" + s.pki.key("serving"),
		"--kube-api-qps=" + strconv.Itoa(clientQPS),
		"--kube-api-burst=" + strconv.Itoa(clientBurst),
	}
}

func (s *setup) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + s.kubeconfigPath(kwokIdentity),
		"--health-address=127.0.0.1:" + strconv.Itoa(s.ports[kwokPort]),
		"--tls-cert-file=" + s.pki.cert("serving"),
		"--tls-private-key-file=" + s.pki.key("serving"),
	}
}
