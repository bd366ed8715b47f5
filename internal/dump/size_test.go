package dump

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

// sizes of the cluster that TestU06_ADumpIsSmall is about, and how large its dump may be (part 5).
const (
	manyNodes = 300
	podsEach  = 10
	small     = 200 << 10
)

// TestU06_ADumpIsSmall: one of 300 nodes and 3,000 pods can be sent by mail.
func TestU06_ADumpIsSmall(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 50 {
		fmt.Fprintf(&b, "type t%d cpu=%d mem=%dGi zones=a,b,c od=%.3f spot=%.3f labels=family=f%d\n", i, 4+i, 16+2*i,
			0.1+float64(i)/100, 0.03+float64(i)/300, i%7)
	}
	b.WriteString("pool p nodes=400\n")
	for i := range manyNodes {
		fmt.Fprintf(&b, "node ip-10-0-%d-%d type=t%d zone=%s pool=p created=%d\n", i/250, i%250, 40+i%10,
			[]string{"a", "b",
				"c"}[i%3], 1767225600+i*37)
		for j := range podsEach {
			fmt.Fprintf(&b, "pod web-%d-%x-%d ns=team-%d node=ip-10-0-%d-%d cpu=%dm mem=%dMi labels=app=a%d\n", i%40,
				i*2654435761%65536, j, i%20, i/250, i%250, 100+i%40*25, 128+i%40*64, i%40)
		}
	}
	s, err := enginetest.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := Make(s, terms(s), AskLaunches)
	if err != nil {
		t.Fatal(err)
	}
	d.Header = header()
	if data := written(t, d); len(data) > small {
		t.Errorf("%d bytes; want at most %d", len(data), small)
	}
}
