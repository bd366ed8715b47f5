package kwok

import (
	_ "embed" // for the table
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/provider/kubereserved"
)

// ec2Table is only set by the linker; its header says where the numbers come from.
//
//go:embed data/aws-us-east-1-2026-07.csv
var ec2Table string

const (
	ec2Region = "us-east-1"

	// ec2LabelPrefix begins the labels of nodes of Karpenter's EC2 provider. With them a pool written for EC2 can be
	// tried on simulated machines.
	ec2LabelPrefix = "karpenter.k8s.aws/instance-"

	gpuResource = "nvidia.com/gpu"
)

// ec2Family is a line of the table.
type ec2Family struct {
	name, arch, maker, gpu string
	memoryPerCore          float64 // GiB
	xlargePrice            float64 // dollars per hour; 0 when every size has its own
	spotRatio              float64
}

// ec2Size is a machine of a family.
type ec2Size struct {
	name        string
	cores, pods int64
	memory      float64 // GiB
	price       float64 // dollars per hour, on-demand
	gpus        int64
}

// EC2Inventory returns real EC2 instance types with the on-demand prices of us-east-1 in July 2026, in four zones.
// Spot prices are a ratio of these that we chose; see docs/catalogues.md.
func EC2Inventory() (Inventory, error) { return parseEC2Table(ec2Table) }

func parseEC2Table(table string) (Inventory, error) {
	reader := csv.NewReader(strings.NewReader(table))
	reader.Comment = '#'
	lines, err := reader.ReadAll()
	if err != nil {
		return Inventory{}, fmt.Errorf("table of EC2 types: %w", err)
	}
	var types []catalog.Type
	for i, line := range lines {
		if i == 0 { // the names of the columns
			continue
		}
		of, err := parseEC2Family(line)
		if err != nil {
			return Inventory{}, fmt.Errorf("table of EC2 types, %s: %w", line[0], err)
		}
		for _, text := range strings.Fields(line[len(line)-1]) {
			size, err := parseEC2Size(of, text)
			if err != nil {
				return Inventory{}, fmt.Errorf("table of EC2 types, %s, size %q: %w", of.name, text, err)
			}
			t, err := ec2Type(of, size)
			if err != nil {
				return Inventory{}, fmt.Errorf("table of EC2 types, %s.%s: %w", of.name, size.name, err)
			}
			types = append(types, t)
		}
	}
	return newInventory(types, nil)
}

func parseEC2Family(line []string) (ec2Family, error) {
	const columns = 8
	if len(line) != columns {
		return ec2Family{}, fmt.Errorf("%d columns; want %d", len(line), columns)
	}
	of := ec2Family{name: line[0], arch: line[1], maker: line[2], gpu: line[3]}
	for i, number := range []*float64{&of.memoryPerCore, &of.xlargePrice, &of.spotRatio} {
		if line[4+i] == "" {
			continue
		}
		parsed, err := strconv.ParseFloat(line[4+i], 64)
		if err != nil || parsed <= 0 {
			return ec2Family{}, fmt.Errorf("column %d is %q; want a number above 0", 5+i, line[4+i])
		}
		*number = parsed
	}
	return of, nil
}

// parseEC2Size reads size/pods/cores/GiB/price/gpus. Empty and missing parts follow the family's rule.
func parseEC2Size(of ec2Family, text string) (ec2Size, error) {
	const parts = 6
	fields := strings.Split(text, "/")
	if len(fields) > parts {
		return ec2Size{}, fmt.Errorf("%d parts; want at most %d", len(fields), parts)
	}
	size := ec2Size{name: fields[0]}
	var numbers [parts]float64
	for i, field := range fields[1:] {
		if field == "" {
			continue
		}
		parsed, err := strconv.ParseFloat(field, 64)
		if err != nil || parsed <= 0 {
			return ec2Size{}, fmt.Errorf("part %d is %q; want a number above 0", i+2, field)
		}
		numbers[i+1] = parsed
	}
	size.pods, size.cores, size.memory, size.price, size.gpus = int64(numbers[1]), int64(numbers[2]), numbers[3],
		numbers[4], int64(numbers[5])
	if size.cores == 0 {
		size.cores = coresOf(size.name)
	}
	if size.memory == 0 {
		size.memory = of.memoryPerCore * float64(size.cores)
	}
	if size.price == 0 {
		size.price = of.xlargePrice * float64(size.cores) / 4
	}
	if size.pods == 0 || size.cores == 0 || size.memory == 0 || size.price == 0 {
		return ec2Size{}, fmt.Errorf("pods %d, cores %d, GiB %v, price %v; want all above 0", size.pods, size.cores,
			size.memory, size.price)
	}
	return size, nil
}

// coresOf returns the cores of a size by its name, 0 if the name does not tell.
func coresOf(size string) int64 {
	switch size {
	case "medium":
		return 1
	case "large":
		return 2
	case "xlarge":
		return 4
	}
	times, err := strconv.ParseInt(strings.TrimSuffix(size, "xlarge"), 10, 64)
	if err != nil {
		return 0
	}
	return 4 * times
}

func ec2Type(of ec2Family, size ec2Size) (catalog.Type, error) {
	onDemand, err := resources.FromDollars(size.price)
	if err != nil {
		return catalog.Type{}, err
	}
	spot, err := resources.FromDollars(size.price * of.spotRatio)
	if err != nil {
		return catalog.Type{}, err
	}
	name := of.name + "." + size.name
	memory := int64(size.memory * (1 << 30))
	capacity := resources.Amounts{
		// whole Mi, which print well
		resources.NameCPU:              size.cores * 1000,
		resources.NameMemory:           (memory - memory*ec2HypervisorPermille/1000) >> 20 << 20,
		resources.NameEphemeralStorage: genericStorage, resources.NamePods: size.pods,
	}
	if size.gpus > 0 {
		capacity[gpuResource] = size.gpus
	}
	return catalog.Type{
		Name:     name,
		Labels:   ec2Labels(of, size),
		Capacity: capacity,
		Overhead: ec2Overhead(size),
		Offerings: offerings([]string{ec2Region + "a", ec2Region + "b", ec2Region + "c", ec2Region + "d"}, onDemand,
			spot),
	}, nil
}

func ec2Labels(of ec2Family, size ec2Size) requirement.Set {
	category := of.name[:strings.IndexAny(of.name+"0", "0123456789")]
	generation := strings.TrimPrefix(of.name, category)
	memoryMi := int64(size.memory * 1024)
	labels := map[string]string{
		string(labelArch): of.arch, string(labelOS): "linux", string(labelRegion): ec2Region,
		string(labelSize): size.name, string(labelFamily): of.name, string(labelCPU): fmt.Sprint(size.cores),
		string(labelMemory):         mebibytes(memoryMi),
		ec2LabelPrefix + "category": category, ec2LabelPrefix + "family": of.name, ec2LabelPrefix +
			"generation": generation[:min(1, len(generation))],
		ec2LabelPrefix + "size": size.name, ec2LabelPrefix + "cpu": fmt.Sprint(size.cores), ec2LabelPrefix +
			"memory": fmt.Sprint(memoryMi),
		ec2LabelPrefix + "cpu-manufacturer": of.maker, ec2LabelPrefix + "hypervisor": "nitro",
	}
	if size.gpus > 0 {
		labels[ec2LabelPrefix+"gpu-name"] = of.gpu
		labels[ec2LabelPrefix+"gpu-manufacturer"] = "nvidia"
		labels[ec2LabelPrefix+"gpu-count"] = fmt.Sprint(size.gpus)
	}
	return requirement.FromLabels(labels)
}

// mebibytes returns an amount of memory in the form of a quantity.
func mebibytes(n int64) string {
	if n%1024 == 0 {
		return gibibytes(n / 1024)
	}
	return fmt.Sprintf("%dMi", n)
}

// ec2HypervisorPermille is the hypervisor's share of the memory, in 1/1000.
const ec2HypervisorPermille = 75

func ec2Overhead(size ec2Size) resources.Amounts {
	return resources.Amounts{
		resources.NameCPU:    kubereserved.CPU(int64(size.cores)),
		resources.NameMemory: kubereserved.Memory(size.pods) + kubereserved.EvictionMemory,
	}
}
