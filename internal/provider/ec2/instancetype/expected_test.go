package instancetype_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
)

// otherwise has EC2's own bandwidth for types where the peer has a different one, or none: the peer's table comes from
// pages of documentation. They round, leave out old types, and have been corrected by EC2 for i8g since.
var otherwise = map[string]string{
	"c1.medium": "300", "c3.large": "500", "c3.8xlarge": "5000", "c4.large": "625", "i8g.12xlarge": "28125",
	"t1.micro": "70", "t2.nano": "32", "t2.small": "128", "t2.large": "512",
}

// E-18, E-19, E-20, E-22: labels and allocatable resources, compared field by field with the peer's documentation of
// its own.
func TestTypesAreThoseOfThePeer(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	rows := expected(t)
	if len(rows) < 40 {
		t.Fatalf("%d rows, want at least 40", len(rows))
	}
	for _, want := range rows {
		info, found := types[want["type"]]
		if !found {
			t.Errorf("EC2 does not sell %s", want["type"])
			continue
		}
		if rate, differs := otherwise[want["type"]]; differs {
			want["net"] = rate
		}
		node, err := instancetype.Machine(&info, instancetype.Class{MemoryOverhead: 0.075}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for column, got := range seen(instancetype.Labels(&info), node) {
			if got != want[column] {
				t.Errorf("%s: %s is %q, want %q", want["type"], column, got, want[column])
			}
		}
	}
}

// seen returns the columns of the table.
func seen(labels map[string]string, node instancetype.Node) map[string]string {
	label := func(names ...string) string {
		var values []string
		for _, name := range names {
			value, found := labels["karpenter.k8s.aws/instance-"+name]
			if !found {
				return "-"
			}
			values = append(values, value)
		}
		return strings.Join(values, "/")
	}
	usable := func(name string, unit int64) string {
		return fmt.Sprint((node.Capacity[name] - node.Overhead[name]) / unit)
	}
	var devices []string
	for name, amount := range node.Capacity {
		if strings.Contains(name, "/") && !strings.HasPrefix(name, "vpc.amazonaws.com/") {
			devices = append(devices, fmt.Sprintf("%s=%d", name, amount))
		}
	}
	slices.Sort(devices)
	columns := map[string]string{
		"arch": labels["kubernetes.io/arch"], "type": labels["node.kubernetes.io/instance-type"],
		"category":   label("category"),
		"generation": label("generation"), "cores": label("cpu"), "maker": label("cpu-manufacturer"),
		"clock": label("cpu-sustained-clock-speed-mhz"),
		"MiB":   label("memory"), "hypervisor": label("hypervisor"),
		"encryption": label("encryption-in-transit-supported"),
		"ebs":        label("ebs-bandwidth"), "net": label("network-bandwidth"), "nvme": label("local-nvme"),
		"gpu":         label("gpu-name", "gpu-manufacturer", "gpu-count", "gpu-memory"),
		"accelerator": label("accelerator-name", "accelerator-manufacturer", "accelerator-count"),
		"cpu":         usable("cpu", 1), "memory": usable("memory", 1<<20), "pods": usable("pods", 1),
		"efa": usable("vpc.amazonaws.com/efa", 1), "devices": strings.Join(devices, " "),
	}
	if columns["efa"] == "0" {
		columns["efa"] = "-"
	}
	if columns["devices"] == "" {
		columns["devices"] = "-"
	}
	return columns
}

// expected reads the table: each row by column.
func expected(t *testing.T) []map[string]string {
	t.Helper()
	file, err := os.Open("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma, reader.Comment = '\t', '#'
	lines, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}
