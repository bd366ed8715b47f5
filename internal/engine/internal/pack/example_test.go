package pack_test

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/engine/internal/pack"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// The cluster of the tutorial in the package's documentation.
func ExampleSolve() {
	snapshot, err := script.Parse(`
type m5.large   cpu=2 mem=8Gi  zones=a,b od=0.096
type m5.xlarge  cpu=4 mem=16Gi zones=a,b od=0.192
pool default
node n1         type=m5.large zone=a pool=default
pod old         cpu=1500m node=n1
pod web-0..1    cpu=1 need=zone=b
`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(pack.Solve(snapshot, snapshot.Pending))
	// Output:
	// launch default m5.large|m5.xlarge zone=b on-demand 0.096/h: web-0..1
}
