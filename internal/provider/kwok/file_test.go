package kwok_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// element returns a file of one well-formed type in which a piece is replaced.
func element(old, new string) string {
	const good = `[{"name": "a", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "2", "memory": "4Gi"},
	 "offerings": [{"Price": 0.5, "Requirements": [
	   {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
	   {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}]}]}]`
	return strings.Replace(good, old, new, 1)
}

// TestKarpentersFileFormatIsUnderstood is P-51: what Karpenter's generator writes, in the spellings that its parser
// accepts.
func TestKarpentersFileFormatIsUnderstood(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"as written by hand": element("", ""),
		"keys in another case": strings.NewReplacer(`"Price"`, `"price"`, `"Requirements"`, `"requirements"`,
			`"key"`, `"Key"`).Replace(element("", "")),
		"with all the generator writes": element(`"Price": 0.5`,
			`"Price": 0.5, "Available": true, "ReservationCapacity": 0, "CapacityOverride": null, "OverheadOverride": null`),
		"numbers as resources": element(`"cpu": "2"`, `"cpu": 2`),
	} {
		inventory, err := kwok.ParseInventory([]byte(file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kind := findType(t, inventory.Catalog(), "a")
		if kind.Capacity["pods"] != 110 || kind.Capacity["cpu"] != 2000 || kind.Capacity["memory"] != 4<<30 {
			t.Errorf("%s: capacity %v, want 2 cpus, 4Gi and 110 pods", name, kind.Capacity)
		}
		want := catalog.Offering{Zone: "z", CapacityType: catalog.Spot, Price: 500_000, Available: true}
		if len(kind.Offerings) != 1 || fmt.Sprint(kind.Offerings[0]) != fmt.Sprint(want) {
			t.Errorf("%s: offerings %v, want %v", name, kind.Offerings, want)
		}
	}
}

// TestAFileOfTheDefaultCatalogueIsTheDefaultCatalogue writes the default inventory in the file's format and reads it.
func TestAFileOfTheDefaultCatalogueIsTheDefaultCatalogue(t *testing.T) {
	t.Parallel()
	want := mustGeneric(t).Catalog()
	var elements []string
	for _, kind := range want.Types {
		var offerings []string
		for _, o := range kind.Offerings {
			offerings = append(offerings, fmt.Sprintf(`{"Price": %v, "Available": true, "Requirements": [
			 {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [%q]}, {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [%q]}]}`,
				o.Price.Dollars(), o.CapacityType, o.Zone))
		}
		arch, _ := kind.Labels.Get("kubernetes.io/arch").Single()
		system, _ := kind.Labels.Get("kubernetes.io/os").Single()
		elements = append(elements,
			fmt.Sprintf(`{"name": %q, "offerings": [%s], "architecture": %q, "operatingSystems": [%q],
		 "resources": {"cpu": "%d", "ephemeral-storage": "20Gi", "memory": "%dGi", "pods": "%d"}}`, kind.Name,
				strings.Join(offerings, ","),
				arch, system, kind.Capacity["cpu"]/1000, kind.Capacity["memory"]>>30, kind.Capacity["pods"]))
	}
	inventory, err := kwok.ParseInventory([]byte("[" + strings.Join(elements, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	if got := inventory.Catalog(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("the catalogue read from the file differs from the default one")
	}
}

func TestLabelsOfFileTypesFollowTheirNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"m5.2xlarge": "m5 2xlarge", "m7i-flex.large": "m7i 2", "n2-standard-4": "n2 2", "Standard_D4s_v3": "S 2",
		"c-4x-amd64-linux": "c 2", "x": "x 2", "m5.metal": "m5 metal", "m5.huge": "m5 2",
	} {
		inventory, err := kwok.ParseInventory([]byte(element(`"name": "a"`, fmt.Sprintf(`"name": %q`, name))))
		if err != nil {
			t.Fatal(err)
		}
		labels := findType(t, inventory.Catalog(), name).Labels
		family, _ := labels.Get("karpenter.kwok.sh/instance-family").Single()
		size, _ := labels.Get("karpenter.kwok.sh/instance-size").Single()
		if got := family + " " + size; got != want {
			t.Errorf("%s: family and size %s, want %s", name, got, want)
		}
	}
}

func TestOfferingsMayNarrowTheirTypeAndAddLabels(t *testing.T) {
	t.Parallel()
	file := strings.Replace(element(`"linux"`, `"linux", "windows"`), `"values": ["z"]}`,
		`"values": ["y", "z"]}, {"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}, {"key": `+
			`"node.kubernetes.io/windows-build", "operator": "In", "values": ["10.0.20348"]}`,
		1)
	inventory, err := kwok.ParseInventory([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	c := inventory.Catalog()
	if got := fmt.Sprint(c.Types[0].Offerings[1].Labels); len(c.Types[0].Offerings) != 2 ||
		got != "kubernetes.io/os=windows node.kubernetes.io/windows-build=10.0.20348" {
		t.Errorf("labels of the second of %d offerings: %s", len(c.Types[0].Offerings), got)
	}
	if !c.WellKnown["node.kubernetes.io/windows-build"] || c.WellKnown["topology.kubernetes.io/region"] {
		t.Errorf("well-known labels %v: want those that the file gives values for", c.WellKnown)
	}
}

// TestMalformedFilesAreRefusedByName: each error names the element, the field, the value and what is allowed.
func TestMalformedFilesAreRefusedByName(t *testing.T) {
	t.Parallel()
	const zone = `{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]}`
	for _, test := range []struct{ file, want string }{
		{``, "not JSON"},
		{`[`, "not JSON"},
		{`[] []`, "not JSON: more text after the array, at byte"},
		{`{}`, "instance types: got {}; want an array"},
		{`null`, "instance types: got null; want an array"},
		{`[5]`, "instance type 0: got 5; want an object"},
		{`[null]`, "instance type 0: got null; want an object"},
		{`[{}]`, "instance type 0.name: got nothing; want a string"},
		{element(`"name": "a"`, `"name": ""`), `instance type 0.name: got ""; want a string`},
		{element(`"name": "a"`, `"name": "a b"`), `instance type 0.name: got "a b"; want a string`},
		{element(`"name": "a"`, `"name": "a", "NAME": "b"`), `instance type 0: field "name" stands twice`},
		{element(`"name": "a"`, `"name": "a", "zone": "z"`),
			`unknown field "zone"; allowed are name, offerings, architecture, operatingSystems, resources`},
		{element(`"amd64"`, `7`), "instance type 0 (a).architecture: got 7; want a string"},
		{element(`["linux"]`, `[]`), "instance type 0 (a).operatingSystems: got []; want at least one"},
		{element(`["linux"]`, `["li nux"]`), `instance type 0 (a).operatingSystems[0]: got "li nux"`},
		{element(`["linux"]`, `"linux"`), `operatingSystems: got "linux"; want an array`},
		{element(`"cpu": "2"`, `"cpu": "two"`), `instance type 0 (a).resources.cpu: got "two"; want a quantity`},
		{element(`"cpu": "2"`, `"cpu": "-2"`), `resources.cpu: got "-2"; want a quantity`},
		{element(`"cpu": "2"`, `"cpu": "100m"`), `resources.cpu: got "100m"; want more than`},
		{element(`"cpu": "2", `, ``), `resources.cpu: got nothing; want more than`},
		{element(`"cpu": "2"`, `"cpu": "1e-2000000000"`), `resources.cpu: got "1e-2000000000"; want a quantity`},
		{element(`"4Gi"`, `"10E"`), `resources.memory: got "10E"; want a quantity`},
		{element(`"4Gi"`, `{}`), `resources.memory: got {}; want a quantity`},
		{element(`"cpu": "2"`, `"cpu": "2", "nodes": "1"`), `resources: unknown field "nodes"`},
		{element(`"cpu": "2"`, `"cpu": "2", "a b": "1"`), `resources: unknown field "a b"`},
		{element(`0.5`, `"0.5"`), `instance type 0 (a).offerings[0].Price: got "0.5"; want a number of dollars`},
		{element(`0.5`, `-1`), `offerings[0].Price: got -1; want a number of dollars`},
		{element(`0.5`, `1e300`), `offerings[0].Price: got 1e300; want`},
		{element(`"Price": 0.5, `, ``), `offerings[0].Price: got nothing; want`},
		{element(`0.5`, `0.5, "Available": "yes"`), `offerings[0].Available: got "yes"; want true or false`},
		{element(`0.5`, `0.5, "ReservationCapacity": 1.5`),
			`offerings[0].ReservationCapacity: got 1.5; want a whole number`},
		{element(`0.5`, `0.5, "CapacityOverride": {"cpu": "1"}`),
			`offerings[0].CapacityOverride: got {"cpu": "1"}; want null`},
		{element(`0.5`, `0.5, "capacityType": "spot"`), `offerings[0]: unknown field "capacityType"`},
		{element(zone, ``), "not JSON"},
		{element(`,
	   `+zone, ``), `want a requirement with key topology.kubernetes.io/zone, operator In`},
		{element(`["z"]`, `[]`), `operator In needs at least one value`},
		{element(`"In", "values": ["z"]`, `"Exists"`),
			`want a requirement with key topology.kubernetes.io/zone, operator In`},
		{element(`"In", "values": ["z"]`, `"Is", "values": ["z"]`), `"Is" is none of In, NotIn`},
		{element(`["spot"]`, `["sport"]`), `"sport"; want on-demand, spot or reserved`},
		{element(zone, zone+`,`+strings.Replace(zone, `"z"`, `"y"`, 1)),
			`none contradicts another, but those of topology.kubernetes.io/zone do`},
		{element(zone, zone+`, {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}`),
			`contradicts the instance type, which has kubernetes.io/arch=amd64`},
		{element(zone, zone+`, {"key": "bad key", "operator": "Exists"}`),
			`Requirements[2].key: got "bad key"; want a label key`},
		{element(`}]}]}]`, `}]}]}, {}]`), `instance type 1.name`},
		{element(`"offerings": [`, `"offerings": [], "x": [`), `unknown field "x"`},
		{strings.TrimSuffix(element("", ""), "]") + "," + element("", "")[1:], `instance type a: listed twice`},
	} {
		_, err := kwok.ParseInventory([]byte(test.file))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s...: error %v, want one with %q", test.file, err, test.want)
		}
	}
}

// TestTheFileInTheDocumentationIsAccepted keeps docs/catalogues.md true.
func TestTheFileInTheDocumentationIsAccepted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/catalogues.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```json\n")
	file, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the page has no example of a file")
	}
	inventory, err := kwok.ParseInventory([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if kind := findType(t, inventory.Catalog(), "m5.large"); len(kind.Offerings) != 2 {
		t.Errorf("%d offerings, want one in each of two zones", len(kind.Offerings))
	}
	if want := fmt.Sprintf("%d real EC2 instance types", len(mustEC2(t).Types)); !strings.Contains(string(page),
		want) {
		t.Errorf("the page does not say %q", want)
	}
}

// FuzzParseInventory: no bytes make it panic, and what it accepts can be planned with and launched from.
func FuzzParseInventory(f *testing.F) {
	f.Add([]byte(smallFile))
	f.Add([]byte(element("", "")))
	f.Add([]byte(element(`"cpu": "2"`, `"cpu": 2e1, "memory": "1Ki"`)))
	f.Add([]byte(element(`["z"]`, `["z","y","x"]`)))
	f.Add([]byte(element(`0.5`, `0, "Available": false, "ReservationCapacity": 3`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		inventory, err := kwok.ParseInventory(data)
		if err != nil {
			if err.Error() == "" || len(err.Error()) > 2000 {
				t.Errorf("error of %d characters, want a short one", len(err.Error()))
			}
			return
		}
		c := inventory.Catalog()
		if err := c.Validate(); err != nil {
			t.Fatalf("accepted, but not valid: %v", err)
		}
		for _, kind := range c.Types {
			w := newWorld(t, inventory, time.Second)
			claim := newClaim("web", map[string]string{string(catalog.LabelInstanceType): kind.Name})
			instance, err := w.Launch(t.Context(), claim, time.Time{})
			if err == nil && !kind.Labels.Matches(instance.Labels) {
				t.Errorf("%s: labels %v are not those of its type, %s", kind.Name, instance.Labels, kind.Labels)
			}
			if _, err := w.Boot(t.Context(), w.clock.Add(time.Minute)); err != nil {
				t.Errorf("%s: the API server refuses the node: %v", kind.Name, err)
			}
			if instance.Type != "" &&
				!requirement.FromLabels(map[string]string{corev1.LabelHostname: "web"}).Matches(instance.Labels) {
				t.Errorf("%s: hostname is %q, want web", kind.Name, instance.Labels[corev1.LabelHostname])
			}
		}
	})
}
