package churn

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
)

// appLabel names the workload of a pod.
const appLabel = "app"

// app is a Deployment of users.
type app struct {
	*appsv1.Deployment
	constraint string // with which it was drawn
	guarded    bool   // has a PodDisruptionBudget
}

func (u *users) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func kind(version, name string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version, Kind: name}
}

// newApp draws a Deployment with one constraint that ties its pods to nodes or to each other, and with independent
// other properties.
func (u *users) newApp(i int) *app {
	d := u.dice("app", i)
	name := fmt.Sprintf("app%d", i)
	labels := map[string]string{appLabel: name}
	one := int32(d.from(1, 7))
	a := &app{Deployment: &appsv1.Deployment{
		TypeMeta: kind("apps/v1", "Deployment"), ObjectMeta: u.meta(of(d, u.spaces...), name),
		Spec: appsv1.DeploymentSpec{
			Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
			Strategy: strategy(d),
		},
	}}
	pod := &a.Spec.Template
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	*pod.Spec.TerminationGracePeriodSeconds = of(d, int64(0), 1, 1, 1, 5, 15)
	pod.Spec.Containers = containers(d)
	constraints := u.constraints()
	a.constraint = constraints[d.IntN(len(constraints))].name
	u.constrain(a, a.constraint, u.dice("constraint", i))
	also := u.dice("also", i)
	if also.chance(0.12) {
		pod.Spec.PriorityClassName = u.prefix + "-high"
	}
	if also.chance(0.06) {
		pod.Annotations = map[string]string{karpenterv1.DoNotDisruptAnnotationKey: "true"}
	}
	return a
}

func strategy(d dice) appsv1.DeploymentStrategy {
	update := func(surge, unavailable intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{
			Type:          appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
		}
	}
	return of(d, update(intstr.FromInt32(1), intstr.FromInt32(0)), update(intstr.FromInt32(0), intstr.FromInt32(1)),
		update(intstr.FromString("25%"), intstr.FromString("25%")),
		appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType})
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
}

// containers draws the containers of a pod: small or large, one or several, with requests, limits, both or neither.
func containers(d dice) []corev1.Container {
	size := func() corev1.ResourceList {
		return draw(d, []weighted[corev1.ResourceList]{
			{6, list("200m", "256Mi")}, {6, list("500m", "1Gi")}, {4, list("1", "2Gi")},
			{3, list("1500m", "1Gi")}, {2, list("3", "12Gi")}, {1, list("11800m", "8Gi")},
		})
	}
	one := func(name string) corev1.Container {
		c := corev1.Container{Name: name, Image: "example.invalid/one"}
		asked := size()
		switch d.IntN(8) {
		case 0: // the API server copies them to requests
			c.Resources.Limits = asked
		case 1:
			c.Resources.Requests, c.Resources.Limits = asked, asked
		case 2: // a LimitRange may give it some
		default:
			c.Resources.Requests = asked
		}
		return c
	}
	all := []corev1.Container{one("main")}
	for len(all) < 3 && d.chance(0.15) {
		all = append(all, one(fmt.Sprintf("beside%d", len(all))))
	}
	return all
}

// constraint ties pods to nodes or to each other.
type constraint struct {
	name string
	put  func(u *users, a *app, pod *corev1.PodSpec, d dice)
}

func (u *users) constrain(a *app, name string, d dice) {
	for _, c := range u.constraints() {
		if c.name == name {
			c.put(u, a, &a.Spec.Template.Spec, d)
		}
	}
}

// constraints returns all constraints.
func (u *users) constraints() []constraint {
	return append(nodeConstraints(), podConstraints()...)
}

func nodeConstraints() []constraint {
	return []constraint{
		{"none", func(*users, *app, *corev1.PodSpec, dice) {}},
		{"zone", func(_ *users, _ *app, pod *corev1.PodSpec, d dice) {
			pod.NodeSelector = map[string]string{corev1.LabelTopologyZone: of(d, zones()...)}
		}},
		{"on-demand", func(_ *users, _ *app, pod *corev1.PodSpec, _ dice) {
			pod.NodeSelector = map[string]string{karpenterv1.CapacityTypeLabelKey: karpenterv1.CapacityTypeOnDemand}
		}},
		{"arm", func(_ *users, _ *app, pod *corev1.PodSpec, _ dice) {
			pod.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
		}},
		{"team", func(_ *users, _ *app, pod *corev1.PodSpec, _ dice) {
			pod.NodeSelector = map[string]string{teamKey: teamValue}
			pod.Tolerations = []corev1.Toleration{{Key: teamKey, Operator: corev1.TolerationOpEqual, Value: teamValue}}
		}},
		{"tolerates", func(_ *users, _ *app, pod *corev1.PodSpec, _ dice) {
			pod.Tolerations = []corev1.Toleration{
				{Key: teamKey, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
			}
		}},
		{"required node affinity", func(_ *users, _ *app, pod *corev1.PodSpec, d dice) {
			need(pod, []corev1.NodeSelectorRequirement{
				{Key: kwokv1alpha1.InstanceFamilyLabelKey, Operator: corev1.NodeSelectorOpNotIn,
					Values: []string{of(d, "c", "m")}},
				{Key: kwokv1alpha1.InstanceCPULabelKey, Operator: corev1.NodeSelectorOpGt,
					Values: []string{of(d, "1", "3")}},
			}, []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
				Values: []string{of(d, zones()...)}}})
		}},
		{"preferred node affinity", func(_ *users, _ *app, pod *corev1.PodSpec, d dice) {
			affinityOf(pod).NodeAffinity = &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
					{Weight: 10,
						Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn,
								Values: []string{of(d, append(zones(), "nowhere")...)}},
						}}},
				}}
		}},
		{"host port", func(_ *users, _ *app, pod *corev1.PodSpec, d dice) {
			pod.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(9000 + d.IntN(2))}}
		}},
	}
}

func podConstraints() []constraint {
	zone, host := corev1.LabelTopologyZone, corev1.LabelHostname
	other := func(u *users, a *app, d dice) string {
		if len(u.apps) == 0 {
			return a.Name
		}
		return of(d, u.apps...).Name
	}
	return []constraint{
		{"affinity to itself, zone", func(_ *users, a *app, pod *corev1.PodSpec, _ dice) { near(pod, a.Name, zone) }},
		{"affinity to itself, host", func(_ *users, a *app, pod *corev1.PodSpec, _ dice) { near(pod, a.Name, host) }},
		{"affinity to another, zone", func(u *users, a *app, pod *corev1.PodSpec, d dice) {
			near(pod, other(u, a, d), zone)
		}},
		{"affinity to another, host", func(u *users, a *app, pod *corev1.PodSpec, d dice) {
			near(pod, other(u, a, d), host)
		}},
		{"preferred affinity", func(u *users, a *app, pod *corev1.PodSpec, d dice) {
			affinityOf(pod).PodAffinity = &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 50, PodAffinityTerm: term(other(u, a, d), of(d, zone, host))},
				}}
		}},
		{"anti-affinity to itself, host", func(_ *users, a *app, pod *corev1.PodSpec, _ dice) {
			apart(pod, a.Name, host)
		}},
		{"anti-affinity to itself, zone", func(_ *users, a *app, pod *corev1.PodSpec, d dice) {
			*a.Spec.Replicas = int32(d.from(1, 3))
			apart(pod, a.Name, zone)
		}},
		{"anti-affinity to another, host", func(u *users, a *app, pod *corev1.PodSpec, d dice) {
			apart(pod, other(u, a, d), host)
		}},
		{"preferred anti-affinity", func(_ *users, a *app, pod *corev1.PodSpec, d dice) {
			affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 50, PodAffinityTerm: term(a.Name, of(d, zone, host))},
				}}
		}},
		{"spread over zones", func(_ *users, a *app, pod *corev1.PodSpec, d dice) {
			spread(pod, a.Name, zone, d.from(1, 2), corev1.DoNotSchedule)
		}},
		{"spread over zones, minDomains", func(_ *users, a *app, pod *corev1.PodSpec, d dice) {
			spread(pod, a.Name, zone, 1, corev1.DoNotSchedule)
			pod.TopologySpreadConstraints[0].MinDomains = new(int32)
			*pod.TopologySpreadConstraints[0].MinDomains = int32(d.from(2, 4))
		}},
		{"spread over hosts", func(_ *users, a *app, pod *corev1.PodSpec, d dice) {
			spread(pod, a.Name, host, d.from(1, 2), corev1.DoNotSchedule)
		}},
		{"spread over zones and hosts", func(_ *users, a *app, pod *corev1.PodSpec, _ dice) {
			spread(pod, a.Name, zone, 1, corev1.DoNotSchedule)
			spread(pod, a.Name, host, 1, corev1.ScheduleAnyway)
		}},
		{"spread if possible", func(_ *users, a *app, pod *corev1.PodSpec, d dice) {
			spread(pod, a.Name, of(d, zone, host), 1, corev1.ScheduleAnyway)
		}},
		{"spread over capacity types", func(_ *users, a *app, pod *corev1.PodSpec, _ dice) {
			spread(pod, a.Name, karpenterv1.CapacityTypeLabelKey, 1, corev1.DoNotSchedule)
		}},
	}
}

func affinityOf(pod *corev1.PodSpec) *corev1.Affinity {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	return pod.Affinity
}

func need(pod *corev1.PodSpec, terms ...[]corev1.NodeSelectorRequirement) {
	selector := &corev1.NodeSelector{}
	for _, expressions := range terms {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms,
			corev1.NodeSelectorTerm{MatchExpressions: expressions})
	}
	affinityOf(pod).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}
}

func ofApp(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: name}}
}

func term(name, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: ofApp(name)}
}

func near(pod *corev1.PodSpec, name, key string) {
	affinityOf(pod).PodAffinity = &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(name, key)},
	}
}

func apart(pod *corev1.PodSpec, name, key string) {
	affinityOf(pod).PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(name, key)},
	}
}

func spread(pod *corev1.PodSpec, name, key string, skew int, when corev1.UnsatisfiableConstraintAction) {
	pod.TopologySpreadConstraints = append(pod.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
		TopologyKey: key, MaxSkew: int32(skew), WhenUnsatisfiable: when, LabelSelector: ofApp(name),
	})
}

// newGuard returns a PodDisruptionBudget of an app. One in ten never allows an eviction.
func (u *users) newGuard(a *app, d dice) *policyv1.PodDisruptionBudget {
	guard := &policyv1.PodDisruptionBudget{
		TypeMeta: kind("policy/v1", "PodDisruptionBudget"), ObjectMeta: u.meta(a.Namespace, a.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: ofApp(a.Name)},
	}
	one, half, none := intstr.FromInt32(1), intstr.FromString("50%"), intstr.FromInt32(0)
	but := intstr.FromInt32(max(0, *a.Spec.Replicas-1))
	switch d.IntN(10) {
	case 0:
		guard.Spec.MaxUnavailable = &none
	case 1, 2, 3:
		guard.Spec.MinAvailable = &but
	case 4, 5:
		guard.Spec.MinAvailable = &half
	case 6:
		guard.Spec.MaxUnavailable = &half
	default:
		guard.Spec.MaxUnavailable = &one
	}
	return guard
}

// newDaemon returns a DaemonSet, often with limits and without requests.
func (u *users) newDaemon(i int) *appsv1.DaemonSet {
	d := u.dice("daemon", i)
	name := fmt.Sprintf("daemon%d", i)
	labels := map[string]string{appLabel: name}
	set := &appsv1.DaemonSet{
		TypeMeta: kind("apps/v1", "DaemonSet"), ObjectMeta: u.meta(of(d, u.spaces...), name),
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	pod := &set.Spec.Template.Spec
	pod.TerminationGracePeriodSeconds = new(int64)
	main := corev1.Container{Name: "main", Image: "example.invalid/daemon"}
	asked := of(d, list("100m", "64Mi"), list("300m", "512Mi"), list("1", "1Gi"))
	switch d.IntN(4) {
	case 0:
		main.Resources.Limits = asked
	case 1: // a LimitRange may give it some
	default:
		main.Resources.Requests = asked
	}
	if d.chance(0.3) {
		main.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(9000 + d.IntN(2))}}
	}
	pod.Containers = []corev1.Container{main}
	if d.chance(0.4) {
		pod.NodeSelector = of(d, map[string]string{corev1.LabelArchStable: "arm64"},
			map[string]string{corev1.LabelArchStable: "amd64"}, map[string]string{teamKey: teamValue})
	}
	if d.chance(0.5) {
		pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	return set
}

// newJob returns a Job whose pods end as soon as they run.
func (u *users) newJob(i int) *batchv1.Job {
	d := u.dice("job", i)
	completions, parallel := int32(d.from(1, 8)), int32(d.from(1, 4))
	job := &batchv1.Job{
		TypeMeta: kind("batch/v1", "Job"), ObjectMeta: u.meta(of(d, u.spaces...), fmt.Sprintf("job%d", i)),
		Spec: batchv1.JobSpec{Completions: &completions, Parallelism: &parallel},
	}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.Template.Spec.Containers = containers(d)
	return job
}

// newRange returns a LimitRange that adds requests to containers whose templates have none.
func (u *users) newRange(namespace string, d dice) *corev1.LimitRange {
	return &corev1.LimitRange{
		TypeMeta: kind("v1", "LimitRange"), ObjectMeta: u.meta(namespace, "defaults"),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			DefaultRequest: of(d, list("250m", "128Mi"), list("900m", "1Gi")), Default: list("16", "64Gi"),
		}}},
	}
}

func (u *users) newPriority() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:   kind("scheduling.k8s.io/v1", "PriorityClass"),
		ObjectMeta: metav1.ObjectMeta{Name: u.prefix + "-high"}, Value: 1000,
	}
}
