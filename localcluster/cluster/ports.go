package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
)

// portName names one of the ports that a cluster listens on.
type portName string

const (
	etcdClientPort        portName = "etcd"
	etcdPeerPort          portName = "etcd-peer"
	apiServerPort         portName = "kube-apiserver"
	controllerManagerPort portName = "kube-controller-manager"
	schedulerPort         portName = "kube-scheduler"
	kwokPort              portName = "kwok"
)

// ports maps every port's name to its number on 127.0.0.1.
type ports map[portName]int

// allPorts lists every port of a cluster.
func allPorts() []portName {
	return []portName{etcdClientPort, etcdPeerPort, apiServerPort, controllerManagerPort, schedulerPort, kwokPort}
}

// withFree returns a copy in which the named ports have new numbers. These are
// reserved until the caller releases them. A program without a reservation may
// still take one before a component binds it: then the caller asks again.
func (p ports) withFree(names []portName) (ports, *Reservation, error) {
	reserved, err := Reserve(len(names))
	if err != nil {
		return nil, nil, err
	}
	next := maps.Clone(p)
	if next == nil {
		next = ports{}
	}
	for i, name := range names {
		next[name] = reserved.Ports[i]
	}
	return next, reserved, nil
}

// url returns the https address of the named port, with the given path.
func (p ports) url(name portName, path string) string {
	return fmt.Sprintf("https://127.0.0.1:%d%s", p[name], path)
}

// loadPorts reads what savePorts wrote. It returns nil if the file does not
// exist or lacks a port: an older version may have had fewer.
func loadPorts(path string) (ports, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ports of the last run: %w", err)
	}
	var loaded ports
	if err := json.Unmarshal(data, &loaded); err != nil {
		return nil, fmt.Errorf("reading the ports of the last run from %s: %w", path, err)
	}
	for _, name := range allPorts() {
		if loaded[name] < 1 || loaded[name] > 65535 {
			return nil, nil
		}
	}
	return loaded, nil
}

// savePorts writes the ports for the next run in the same directory.
func savePorts(path string, p ports) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the ports: %w", err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the ports: %w", err)
	}
	return nil
}
