package v1

import (
	"encoding/json"
	"maps"

	kjson "sigs.k8s.io/json"
)

// KubeletConfiguration are settings of the kubelet, with the names that the kubelet's own configuration
// file has. The fields below are checked; any other field of the kubelet is kept in Unmanaged as it is.
//
// +kubebuilder:pruning:PreserveUnknownFields
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
	SystemReserved ReservedResources `json:"systemReserved,omitempty"`
	// KubeReserved are amounts kept for the kubelet and the container runtime, by resource: cpu, memory,
	// ephemeral-storage and pid.
	// +optional
	KubeReserved ReservedResources `json:"kubeReserved,omitempty"`
	// EvictionHard are thresholds at which pods are evicted at once, by signal, for example
	// memory.available: 5%.
	// +optional
	EvictionHard EvictionThresholds `json:"evictionHard,omitempty"`
	// EvictionSoft are thresholds at which pods are evicted after the grace period of their signal.
	// +optional
	EvictionSoft EvictionThresholds `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod is how long a soft threshold must be met before pods are evicted, by signal,
	// for example 1m30s.
	// +optional
	EvictionSoftGracePeriod EvictionGracePeriods `json:"evictionSoftGracePeriod,omitempty"`
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
	// Unmanaged holds the fields of the kubelet's configuration that have no place above, by name, as JSON.
	Unmanaged map[string]json.RawMessage `json:"-"`
}

// ReservedResources are amounts by resource.
//
// +kubebuilder:validation:MaxProperties=4
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",messageExpression="'kubelet reserves ' + self.filter(k, !(k in ['cpu', 'memory', 'ephemeral-storage', 'pid']))[0] + ': systemReserved and kubeReserved accept cpu, memory, ephemeral-storage and pid'"
// +kubebuilder:validation:XValidation:rule="self.all(k, isQuantity(self[k]) && quantity(self[k]).compareTo(quantity('0')) >= 0)",messageExpression="'kubelet reserves an amount that is no quantity or is negative, for ' + self.filter(k, !isQuantity(self[k]) || quantity(self[k]).compareTo(quantity('0')) < 0)[0] + ': give one such as 100m or 1Gi'"
type ReservedResources map[string]string

// EvictionThresholds are thresholds by eviction signal, each a quantity or a percentage.
//
// +kubebuilder:validation:MaxProperties=6
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",messageExpression="'kubelet eviction names the signal ' + self.filter(k, !(k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available']))[0] + ': the signals are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available'"
// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([0-9]{1,2}([.][0-9]+)?|100([.]0+)?)%$') || isQuantity(self[k]))",messageExpression="'kubelet eviction threshold of ' + self.filter(k, !(self[k].matches('^([0-9]{1,2}([.][0-9]+)?|100([.]0+)?)%$') || isQuantity(self[k])))[0] + ' must be a percentage from 0% to 100% or a quantity such as 100Mi'"
type EvictionThresholds map[string]string

// EvictionGracePeriods are durations by eviction signal, such as 1m30s.
//
// +kubebuilder:validation:MaxProperties=6
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",messageExpression="'kubelet.evictionSoftGracePeriod names the signal ' + self.filter(k, !(k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available']))[0] + ': the signals are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available'"
// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$'))",messageExpression="'kubelet.evictionSoftGracePeriod of ' + self.filter(k, !self[k].matches('^([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+$'))[0] + ' must be a duration such as 1m30s'"
type EvictionGracePeriods map[string]string

// managedKubelet has the fields of KubeletConfiguration without its methods.
type managedKubelet KubeletConfiguration

// MarshalJSON writes the fields and Unmanaged side by side. A name in Unmanaged that is a field too gives way
// to the field.
func (k KubeletConfiguration) MarshalJSON() ([]byte, error) {
	managed, err := json.Marshal(managedKubelet(k))
	if err != nil || len(k.Unmanaged) == 0 {
		return managed, err
	}
	all := maps.Clone(k.Unmanaged)
	for _, name := range managedKubeletNames() {
		delete(all, name)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(managed, &fields); err != nil {
		return nil, err
	}
	maps.Copy(all, fields)
	return json.Marshal(all)
}

// UnmarshalJSON reads the fields, and every other one into Unmanaged, also one whose name differs in its case only.
func (k *KubeletConfiguration) UnmarshalJSON(data []byte) error {
	var managed managedKubelet
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &managed); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, name := range managedKubeletNames() {
		delete(all, name)
	}
	if len(all) > 0 {
		managed.Unmanaged = all
	}
	*k = KubeletConfiguration(managed)
	return nil
}

// managedKubeletNames are the JSON names of the fields of KubeletConfiguration.
func managedKubeletNames() []string {
	return []string{
		"clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved", "evictionHard", "evictionSoft",
		"evictionSoftGracePeriod", "evictionMaxPodGracePeriod", "imageGCHighThresholdPercent",
		"imageGCLowThresholdPercent", "cpuCFSQuota",
	}
}
