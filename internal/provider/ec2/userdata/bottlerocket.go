package userdata

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
)

// table is a table of TOML: strings, numbers, booleans, lists and tables by key.
type table = map[string]any

// localStorage is the name of the bootstrap command that mounts the disks of an instance. Commands run in order of
// their names.
const localStorage = "000-joiner-local-storage"

// Bottlerocket returns settings in TOML: those of the user, unless the cluster, the plan or spec.kubelet decide
// (E-33). release is that of the image, such as "1.50.0"; "" means the newest. Errors: [*Error], [*LacksError],
// [*TooLargeError].
func Bottlerocket(user string, n Node, release string) (string, error) {
	if what := n.Cluster.Lacks(true); what != nil {
		return "", &LacksError{what}
	}
	all := table{}
	if err := toml.Unmarshal([]byte(user), &all); err != nil {
		found := &Error{What: "it is no TOML"}
		var at *toml.DecodeError
		if errors.As(err, &at) {
			found.Line, _ = at.Position()
		}
		return "", found
	}
	settings, err := child(all, "settings", "settings")
	if err != nil {
		return "", err
	}
	kubernetes, err := child(settings, "kubernetes", "settings.kubernetes")
	if err != nil {
		return "", err
	}
	kubernetes["cluster-name"], kubernetes["api-server"] = n.Cluster.Name, n.Cluster.Endpoint
	kubernetes["cluster-certificate"] = n.Cluster.CA
	setKubelet(kubernetes, n)
	if len(n.Labels) > 0 {
		labels, err := child(kubernetes, "node-labels", "settings.kubernetes.node-labels")
		if err != nil {
			return "", err
		}
		for key, value := range n.Labels {
			labels[key] = value
		}
	}
	if len(n.Taints) > 0 {
		taints, err := child(kubernetes, "node-taints", "settings.kubernetes.node-taints")
		if err != nil {
			return "", err
		}
		maps.Copy(taints, bottlerocketTaints(n))
	}
	if n.LocalStorage {
		commands, err := child(settings, "bootstrap-commands", "settings.bootstrap-commands")
		if err != nil {
			return "", err
		}
		commands[localStorage] = mountLocalStorage(release)
	}
	text, err := toml.Marshal(all)
	if err != nil {
		return "", &Error{What: "its settings cannot be written as TOML again"}
	}
	return bounded(string(text))
}

// child returns the table below a key, and creates it if it is missing.
func child(parent table, key, path string) (table, error) {
	switch value := parent[key].(type) {
	case nil:
		made := table{}
		parent[key] = made
		return made, nil
	case table:
		return value, nil
	}
	return nil, &Error{What: path + " is no table"}
}

// setKubelet sets what spec.kubelet and the plan say, and leaves the user's other settings alone.
func setKubelet(kubernetes table, n Node) {
	k := n.kubelet()
	if k.MaxPods != nil {
		kubernetes["max-pods"] = int64(*k.MaxPods)
	}
	switch len(k.ClusterDNS) {
	case 0:
	case 1:
		kubernetes["cluster-dns-ip"] = k.ClusterDNS[0]
	default:
		kubernetes["cluster-dns-ip"] = k.ClusterDNS
	}
	for key, amounts := range map[string]map[string]string{
		"kube-reserved": k.KubeReserved, "system-reserved": k.SystemReserved, "eviction-hard": k.EvictionHard,
		"eviction-soft": k.EvictionSoft, "eviction-soft-grace-period": k.EvictionSoftGracePeriod,
	} {
		if len(amounts) > 0 {
			kubernetes[key] = amounts
		}
	}
	if k.EvictionMaxPodGracePeriod != nil {
		kubernetes["eviction-max-pod-grace-period"] = int64(*k.EvictionMaxPodGracePeriod)
	}
	for key, percent := range map[string]*int32{
		"image-gc-high-threshold-percent": k.ImageGCHighThresholdPercent,
		"image-gc-low-threshold-percent":  k.ImageGCLowThresholdPercent,
	} {
		if percent != nil { // as text, which every release accepts
			kubernetes[key] = strconv.Itoa(int(*percent))
		}
	}
	if k.CPUCFSQuota != nil {
		kubernetes["cpu-cfs-quota-enforced"] = *k.CPUCFSQuota
	}
}

// bottlerocketTaints returns taints in the form of Bottlerocket: by key, a list of "value:effect".
func bottlerocketTaints(n Node) table {
	taints := table{}
	for _, t := range n.Taints {
		list, _ := taints[t.Key].([]string)
		if entry := t.Value + ":" + string(t.Effect); !slices.Contains(list, entry) {
			taints[t.Key] = append(list, entry)
		}
	}
	return taints
}

// mountLocalStorage returns the bootstrap command that makes one volume of the instance's disks. Releases before 1.46
// need the names of the directories.
func mountLocalStorage(release string) table {
	bind := []string{"apiclient", "ephemeral-storage", "bind"}
	if older(release, 1, 46) {
		bind = append(bind, "--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
	}
	return table{
		"commands": [][]string{{"apiclient", "ephemeral-storage", "init"}, bind},
		"mode":     "always", "essential": true,
	}
}
