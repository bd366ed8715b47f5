package placing

// Case is a line of the script language and its expected answer.
type Case struct{ Want, Line string }

// Created are requests that create pods (N13 to N32, N36, N56, N59). The cluster has the node cp1, with the label of
// the control plane and the taint node-role.kubernetes.io/master:NoSchedule, and the node w1. Authorized are
// system:kube-scheduler, system:admin and namespace ops.
func Created() []Case {
	return []Case{
		{"deny ControlPlane/NodeName", "alice create pod app/n13 node=cp1"},
		{"deny ControlPlane/NodeName", "system:admin create pod app/n14 node=cp1"},
		{"deny ControlPlane/NodeName", "alice create pod ops/n15 node=cp1"},
		{"allow", "system:admin create pod ops/n16 node=cp1"},
		{"allow", "alice create pod app/n17 node=w1"},
		{"deny ControlPlane/Toleration",
			"alice create pod app/n18 tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"deny ControlPlane/Toleration",
			"alice create pod app/n19 tolerate=node-role.kubernetes.io/master=:NoSchedule"},
		{"deny ControlPlane/Toleration", "alice create pod app/n20 tolerate=node-role.kubernetes.io/master"},
		{"deny ControlPlane/Toleration", "alice create pod app/n21 tolerate=*"},
		{"allow", "alice create pod app/n22 tolerate=* need=!node-role.kubernetes.io/control-plane"},
		{"allow", "alice create pod app/n23 tolerate=node-role.kubernetes.io/master:NoExecute"},
		{"allow", "alice create pod app/n24"}, // the API server adds the usual tolerations
		{"deny ControlPlane/Selector", "alice create pod app/n25 select=node-role.kubernetes.io/control-plane="},
		{"deny ControlPlane/Selector", "alice create pod app/n26 need=node-role.kubernetes.io/control-plane"},
		{"deny ControlPlane/Selector", "alice create pod app/n27 need=name=cp1"},
		{"allow", "alice create pod app/n28 need=name=cp1 need=name=w1"},
		{"allow", "alice create pod app/n29 prefer=node-role.kubernetes.io/control-plane"},
		{"allow", "alice create pod app/n30 select=zone=nowhere"},
		{"deny ControlPlane/Selector", "alice create pod app/n31 select=kubernetes.io/hostname=cp1"},
		{
			"allow",
			"sa:kube-system/replicaset-controller create pod ops/n32 sa=unlisted tolerate=node-role.kubernetes.io/master:NoSchedule",
		},
		{"deny ControlPlane/Toleration",
			"sa:kube-system/replicaset-controller create pod app/n33 tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"deny ControlPlane/NodeName", "alice create pod app/- node=cp1"},
		{"deny ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run"},
		{"allow", "alice create pod app/n36 dry-run"},
		{"deny ControlPlane/UnknownNode", "alice create pod app/n56 node=cp9"},
		{"allow", "system:admin create pod ops/n56 node=cp9"},
		{"deny ControlPlane/NodeName", "alice create pod app/n59 node=cp1 mirror"},
		{"deny ControlPlane/NodeName", "system:node:w1 create pod app/n59-other node=cp1 mirror"},
		{"allow", "system:node:cp1 create pod app/n59-own node=cp1 mirror"},
	}
}

// Waiting creates the pods for Bound and Changed.
func Waiting() []Case {
	return []Case{
		{"allow", "system:admin create pod ops/a"},
		{"allow", "system:admin create pod ops/b"},
		{"allow", "system:admin create pod ops/c"},
		{"allow", "system:admin create pod ops/d"},
		{"allow", "system:admin create pod app/a"},
		{"allow", "system:admin create pod app/b"},
		{"allow", "system:admin create pod app/c"},
		{"allow", "alice create pod app/two need=name=cp1 need=name=w1"},
		{"allow", "system:admin create pod tmp/debug override=must-gather"},
		{"deny ControlPlane/OverrideMisused", "alice create pod tmp/mine override=mine"},
		{"allow", "alice create pod app/plain"},
		{"allow", "alice create pod app/gated gated"},
		{"allow", "alice create pod app/bound node=w1"},
	}
}

// Bound are bindings of waiting pods on both paths (N28, N45 to N53, H7, F8).
func Bound() []Case {
	return []Case{
		{"deny ControlPlane/Binding", "system:kube-scheduler bind app/a to=cp1"},        // N46, N50: without a kind
		{"deny ControlPlane/Binding", "system:kube-scheduler bind-legacy app/a to=cp1"}, // N49
		{"deny ControlPlane/Binding", "system:kube-scheduler bind app/a to=cp1 kind=Node annotation=a=b label=c=d"},
		{"deny ControlPlane/Binding", "system:kube-scheduler bind app/a to=cp1 dry-run"},
		{"deny ControlPlane/Binding", "system:kube-scheduler bind app/two to=cp1"},
		{"deny ControlPlane/Binding", "alice bind ops/a to=cp1"}, // N47
		{"deny ControlPlane/Binding", "alice bind-legacy ops/a to=cp1 kind=Node"},
		{"deny ControlPlane/UnknownNode", "alice bind app/a to=cp9"}, // N51
		{"deny ControlPlane/UnknownNode", "alice bind-legacy app/a to=cp9"},
		{"deny ControlPlane/OverrideMisused",
			"system:kube-scheduler bind app/a to=w1 annotation=scheduling.openshift.io/emergency-override=mine"},
		{"deny ControlPlane/OverrideMisused", "alice update pod app/a -> override=mine"},
		{"deny ControlPlane/OverrideMisused", "alice update pod/status app/a -> override=mine"},
		{"allow", "system:kube-scheduler bind ops/a to=cp1"},        // N45
		{"allow", "system:kube-scheduler bind-legacy ops/b to=cp1"}, // N49
		{"allow", "system:kube-scheduler bind ops/c to=cp9"},        // N51
		{"allow", "alice bind app/a to=w1"},                         // N52
		{"allow", "alice bind-legacy app/b to=w1"},
		{"deny ControlPlane/Binding", "sa:batch/second bind ops/d to=cp1"}, // N48
		{"allow", "sa:batch/second bind app/c to=w1"},
		{"warn ControlPlane/Binding", "system:kube-scheduler bind tmp/debug to=cp1"},
	}
}

// Templates are workloads (N33, H15). None is refused. Authors of workloads whose pods will be refused get a warning,
// in the namespace app and not in ops. Writes of controllers get none.
func Templates() []Case {
	return []Case{
		{"warn ControlPlane/Toleration",
			"alice create deployment app/deployment tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"warn ControlPlane/Toleration", "alice create daemonset app/daemonset tolerate=* dry-run"},
		{"warn ControlPlane/Selector",
			"alice create statefulset app/statefulset select=node-role.kubernetes.io/control-plane="},
		{"warn ControlPlane/NodeName", "alice create job app/job node=cp1 dry-run"},
		{"warn ControlPlane/NodeName", "alice create cronjob app/cronjob node=cp1"},
		{"warn ControlPlane/Toleration", "alice create replicationcontroller app/replicationcontroller tolerate=*"},
		{"warn ControlPlane/Toleration", "alice create replicaset app/replicaset tolerate=*"},
		{"allow", "alice create deployment ops/deployment tolerate=*"},
		{"allow", "alice create deployment app/ordinary"},
		{"allow", "alice create job app/elsewhere node=cp9 dry-run"},
		{
			"allow",
			"sa:kube-system/deployment-controller create replicaset app/owned owner=Deployment/web tolerate=* dry-run",
		},
		{"warn ControlPlane/Toleration", "alice update deployment app/ordinary -> tolerate=*"},
		{"allow", "alice update deployment app/ordinary tolerate=* -> image=other"},
	}
}

// Entries are requests with additional entries in the list: app/default, group:admins, user:dev/carol and
// system:serviceaccount:web:front (N7, H4, H8).
func Entries() []Case {
	return []Case{
		{"allow", "sa:app/default create pod app/- node=cp1 dry-run"},
		{"deny ControlPlane/NodeName", "app/default create pod app/- node=cp1 dry-run"},
		{"allow", "dev/carol create pod app/- node=cp1 dry-run"},
		{"allow", "dora[admins] create pod app/- node=cp1 dry-run"},
		{"deny ControlPlane/NodeName", "dora[others] create pod app/- node=cp1 dry-run"},
		{"allow", "sa:web/front create pod web/- node=cp1 dry-run"},
		{"deny ControlPlane/NodeName", "sa:web/other create pod web/- node=cp1 dry-run"},
		{"deny ControlPlane/NodeName", "dev/carol create pod tmp/- node=cp1 dry-run"},
	}
}

// Changed are updates of the pods app/plain and app/gated, which wait, and app/bound on w1 (N37 to N39).
func Changed() []Case {
	return []Case{
		{"deny ControlPlane/Toleration",
			"alice update pod app/plain -> tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"allow", "alice update pod app/bound -> tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"deny ControlPlane/Selector",
			"alice update pod app/gated gated -> select=node-role.kubernetes.io/control-plane="},
		{"deny ControlPlane/Selector", "alice update pod app/gated gated -> need=name=cp1"},
		{"allow", "alice update pod app/plain -> label=a=b"},
		{"allow", "alice update pod app/gated gated -> ungated"},
	}
}

// Old are requests about pods that were stored before the policy was in force. app/old, app/old-gated and
// ops/old-gated need cp1, and the last two are gated; app/old-there is on it. Changes that do not concern the node are
// not judged, nor are requests that place nothing (N38, N39, N62, F6, F9).
func Old() []Case {
	return []Case{
		{"allow", "alice update pod app/old need=name=cp1 -> label=a=b"},
		{
			"allow",
			"system:serviceaccount:kube-system:generic-garbage-collector update pod app/old need=name=cp1 -> finalizer=example.com/wait",
		},
		{"allow", "alice update pod app/old need=name=cp1 -> image=other"},
		{"allow", "bob update pod/status app/old need=name=cp1 -> label=a=b"},
		{"allow", "alice update pod app/old-there -> tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"deny ControlPlane/Selector", "alice update pod app/old-gated gated need=name=cp1 -> tolerate=dedicated"},
		{"allow", "system:admin update pod ops/old-gated gated need=name=cp1 -> tolerate=dedicated"},
		{"allow", "alice update pod app/old-gated need=name=cp1 -> ungated"},
	}
}
