package v1beta1

import awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"

// KubeletConfiguration are settings of the kubelet, with the names that the kubelet's own configuration file has. v1
// moved them to the EC2NodeClass, whose types the maps have.
//
// +kubebuilder:validation:XValidation:rule="!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent",message="kubelet.imageGCHighThresholdPercent must be greater than imageGCLowThresholdPercent",fieldPath=".imageGCHighThresholdPercent"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoft) || self.evictionSoft.all(k, has(self.evictionSoftGracePeriod) && k in self.evictionSoftGracePeriod)",message="kubelet.evictionSoft has a signal without an entry in evictionSoftGracePeriod: each soft threshold needs a grace period"
// +kubebuilder:validation:XValidation:rule="!has(self.evictionSoftGracePeriod) || self.evictionSoftGracePeriod.all(k, has(self.evictionSoft) && k in self.evictionSoft)",message="kubelet.evictionSoftGracePeriod has a signal without an entry in evictionSoft: a grace period needs its soft threshold"
type KubeletConfiguration struct {
	// ClusterDNS are the addresses of the cluster's DNS servers.
	// +optional
	// +listType=atomic
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the most pods a node runs.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodsPerCore is the most pods a node runs for each core it has. It cannot go beyond maxPods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved are amounts kept for the operating system, by resource: cpu, memory,
	// ephemeral-storage and pid.
	// +optional
	SystemReserved awsv1.ReservedResources `json:"systemReserved,omitempty"`
	// KubeReserved are amounts kept for the kubelet and the container runtime, by resource: cpu, memory,
	// ephemeral-storage and pid.
	// +optional
	KubeReserved awsv1.ReservedResources `json:"kubeReserved,omitempty"`
	// EvictionHard are thresholds at which pods are evicted at once, by signal, for example
	// memory.available: 5%.
	// +optional
	EvictionHard awsv1.EvictionThresholds `json:"evictionHard,omitempty"`
	// EvictionSoft are thresholds at which pods are evicted after the grace period of their signal.
	// +optional
	EvictionSoft awsv1.EvictionThresholds `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod is how long a soft threshold must be met before pods are evicted, by signal,
	// for example 1m30s.
	// +optional
	EvictionSoftGracePeriod awsv1.EvictionGracePeriods `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod is the most seconds a pod gets to end when it is evicted at a soft
	// threshold.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is how full the disk may be before images are removed, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is how full the disk may stay when images are removed, in percent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota says whether CPU limits of containers are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}
