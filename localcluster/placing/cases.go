package placing

// Case is a line of the script language and the answer to it.
type Case struct{ Want, Line string }

// Created are pods as they are created (N13 to N31, N36, N56, N59): in a cluster with the nodes cp1, which has the label of
// the control plane and the taint node-role.kubernetes.io/master:NoSchedule, and w1. Authorized are system:kube-scheduler,
// system:admin and namespace ops.
func Created() []Case {
	return []Case{
		{"deny ControlPlane/NodeName", "alice create pod app/n13 node=cp1"},
		{"deny ControlPlane/NodeName", "system:admin create pod app/n14 node=cp1"},
		{"deny ControlPlane/NodeName", "alice create pod ops/n15 node=cp1"},
		{"allow", "system:admin create pod ops/n16 node=cp1"},
		{"allow", "alice create pod app/n17 node=w1"},
		{"deny ControlPlane/Toleration", "alice create pod app/n18 tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"deny ControlPlane/Toleration", "alice create pod app/n19 tolerate=node-role.kubernetes.io/master=:NoSchedule"},
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
		{"deny ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run"},
		{"deny ControlPlane/UnknownNode", "alice create pod app/n56 node=cp9"},
		{"allow", "system:admin create pod ops/n56 node=cp9"},
		{"deny ControlPlane/NodeName", "alice create pod app/n59 node=cp1 mirror"},
	}
}

// Bound are bindings on both paths (N45 to N53, H7, F8), of the pods ops/a, ops/b, ops/c, app/a and app/b, which wait, and
// of tmp/debug, which has the emergency override.
func Bound() []Case {
	return []Case{
		{"deny ControlPlane/Binding", "system:kube-scheduler bind app/a to=cp1"},
		{"deny ControlPlane/Binding", "system:kube-scheduler bind-legacy app/a to=cp1"},
		{"deny ControlPlane/Binding", "system:kube-scheduler bind app/a to=cp1 kind=Node annotation=a=b label=c=d"},
		{"deny ControlPlane/Binding", "alice bind ops/a to=cp1"},
		{"deny ControlPlane/Binding", "alice bind-legacy ops/a to=cp1"},
		{"deny ControlPlane/UnknownNode", "alice bind app/a to=cp9"},
		{"deny ControlPlane/OverrideMisused", "system:kube-scheduler bind app/a to=w1 annotation=scheduling.openshift.io/emergency-override=mine"},
		{"deny ControlPlane/OverrideMisused", "alice update pod app/a -> override=mine"},
		{"deny ControlPlane/OverrideMisused", "alice update pod/status app/a -> override=mine"},
		{"allow", "system:kube-scheduler bind ops/a to=cp1"},
		{"allow", "system:kube-scheduler bind-legacy ops/b to=cp1"},
		{"allow", "system:kube-scheduler bind ops/c to=cp9"},
		{"allow", "alice bind app/a to=w1"},
		{"allow", "alice bind-legacy app/b to=w1"},
		{"warn ControlPlane/Binding", "system:kube-scheduler bind tmp/debug to=cp1"},
	}
}

// Changed are updates of the pods app/plain and app/gated, which wait, and app/bound on w1 (N37 to N39).
func Changed() []Case {
	return []Case{
		{"deny ControlPlane/Toleration", "alice update pod app/plain -> tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"allow", "alice update pod app/bound -> tolerate=node-role.kubernetes.io/master:NoSchedule"},
		{"deny ControlPlane/Selector", "alice update pod app/gated gated -> select=node-role.kubernetes.io/control-plane="},
		{"deny ControlPlane/Selector", "alice update pod app/gated gated -> need=name=cp1"},
		{"allow", "alice update pod app/plain -> label=a=b"},
		{"allow", "alice update pod app/gated gated -> ungated"},
	}
}
