package v1

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// V-02: what the kubelet knows and we do not is carried along.
func TestUnmanagedKubeletFieldsAreKept(t *testing.T) {
	t.Parallel()
	const text = `{"featureGates":{"A":true},"maxPods":10,"topologyManagerPolicy":"restricted"}`
	var kubelet KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &kubelet); err != nil {
		t.Fatal(err)
	}
	if kubelet.MaxPods == nil || *kubelet.MaxPods != 10 || len(kubelet.Unmanaged) != 2 {
		t.Errorf("read as %+v, want maxPods 10 and two unmanaged fields", kubelet)
	}
	written, err := json.Marshal(kubelet.DeepCopy())
	if err != nil || string(written) != text {
		t.Errorf("written as %s, error %v, want %s", written, err, text)
	}
}

// A name in another case is another field: it neither sets the one that we know nor fails for its type.
func TestAKubeletFieldOfAnotherCaseIsUnmanaged(t *testing.T) {
	t.Parallel()
	const text = `{"MaxPods":"many","podsPerCore":2}`
	var kubelet KubeletConfiguration
	if err := json.Unmarshal([]byte(text), &kubelet); err != nil || kubelet.MaxPods != nil ||
		len(kubelet.Unmanaged) != 1 {
		t.Fatalf("read as %+v, error %v", kubelet, err)
	}
	if written, err := json.Marshal(kubelet); err != nil || string(written) != text {
		t.Errorf("written as %s, error %v, want %s", written, err, text)
	}
}

// A field that was cleared does not come back from Unmanaged.
func TestAManagedKubeletFieldIsNotTakenFromUnmanaged(t *testing.T) {
	t.Parallel()
	kubelet := KubeletConfiguration{Unmanaged: map[string]json.RawMessage{"maxPods": json.RawMessage("10"),
		"other": json.RawMessage("1")}}
	written, err := json.Marshal(kubelet)
	if want := `{"other":1}`; err != nil || string(written) != want {
		t.Errorf("written as %s, error %v, want %s", written, err, want)
	}
}

func TestReadingAKubeletReplacesTheOldOne(t *testing.T) {
	t.Parallel()
	kubelet := KubeletConfiguration{Unmanaged: map[string]json.RawMessage{"other": json.RawMessage("1")}}
	if err := json.Unmarshal([]byte(`{"podsPerCore":2}`), &kubelet); err != nil {
		t.Fatal(err)
	}
	if kubelet.Unmanaged != nil {
		t.Errorf("unmanaged fields of the old one are left: %v", kubelet.Unmanaged)
	}
}

func TestManagedKubeletNamesAreThoseOfTheFields(t *testing.T) {
	t.Parallel()
	var names []string
	for field := range reflect.TypeFor[KubeletConfiguration]().Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	if got := managedKubeletNames(); !slices.Equal(got, names) {
		t.Errorf("managedKubeletNames() = %q, the fields are %q", got, names)
	}
}
