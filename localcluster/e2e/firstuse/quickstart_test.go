package firstuse

import (
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const quickstart = "docs/quickstart.md"

// reader is somebody who goes through the quick start.
type reader struct {
	*terminal
	page   string
	typing []string // what was typed so far
	up     *running // the cluster of the first block
	tries  []string // what make up has printed to try
	log    string   // the path of Joiner's log, which it has printed
}

// step is a block of the page, known by its first line, and what a reader does with it.
type step struct {
	first string
	do    func(*reader, block)
}

func steps() []step {
	return []step{
		{"make up", (*reader).makeUp},
		{"kubectl create deployment web --image=example.invalid/web --replicas=20", (*reader).work},
		{"make up PROVIDER=ec2", (*reader).makeUpEC2},
		{"apiVersion: karpenter.sh/v1", (*reader).apply},
		{"PodTooLarge: pool default: cpu=1000 is more than any suitable instance type has. To do: " +
			"lower the cpu request of the pod's workload; or", (*reader).event},
	}
}

// U-37: the test that types the quick start knows each of its blocks, and a shell can parse its commands.
func TestU37_TheQuickStartParses(t *testing.T) {
	t.Parallel()
	blocks, known := blocksOf(pageOf(t, quickstart)), steps()
	if len(blocks) != len(known) {
		t.Fatalf("%s has %d blocks, and the test that types it knows %d", quickstart, len(blocks), len(known))
	}
	for i, b := range blocks {
		if b.first() != known[i].first {
			t.Errorf("block %d of %s begins with %q; the test that types it knows %q", i+1, quickstart, b.first(),
				known[i].first)
		}
		if b.language != "" || !regexp.MustCompile(`^(make|kubectl) `).MatchString(b.first()) {
			continue
		}
		for _, line := range b.commands() {
			if output, err := exec.Command("sh", "-n", "-c", line).CombinedOutput(); err != nil {
				t.Errorf("a shell cannot read %q: %s", line, output)
			}
		}
	}
}

// U-37, U-12, U-02: a script types what the quick start says, block by block, and what make up prints to try.
func TestU37_TheQuickStartIsTyped(t *testing.T) {
	t.Parallel()
	r := &reader{terminal: open(t), page: pageOf(t, quickstart)}
	for i, b := range blocksOf(r.page) {
		t.Logf("block %d: %s", i+1, b.first())
		steps()[i].do(r, b)
	}
	r.between()
	r.stop(r.up, "kwok")
}

// inFront starts in the foreground what a target of make runs, with its state in a directory of the terminal.
func (r *reader) inFront(line, state string) *running {
	r.t.Helper()
	recipe := r.works(strings.Replace(line, "make ", "make -n ", 1))
	lines := strings.Split(strings.TrimSpace(recipe), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "bin/demo ") {
		r.t.Fatalf("%s runs %q in the end; want bin/demo", line, last)
	}
	own := regexp.MustCompile(`--dir \S+`).ReplaceAllLiteralString(last, "--dir "+r.tmp+"/"+state)
	return r.start(own)
}

// makeUp is the first block. What it prints stands in the order of U-02.
func (r *reader) makeUp(b block) {
	r.up = r.inFront(b.first(), "kwok")
	said := r.up.until(r.t, func(line string) bool { return strings.HasPrefix(line, "Ctrl-C stops it") })
	from := 0
	for _, part := range []string{"export KUBECONFIG=", "The console, in a browser: http://", "Three things to try:",
		"Joiner's log: ", "Ctrl-C stops it", "make clean deletes it"} {
		at := strings.Index(said[from:], part)
		if at < 0 {
			r.t.Fatalf("make up does not say %q, or not after what was before it:\n%s", part, said)
		}
		from += at
	}
	r.kubeconfig = regexp.MustCompile(`export KUBECONFIG=(\S+)`).FindStringSubmatch(said)[1]
	r.log = regexp.MustCompile(`Joiner's log: (\S+)`).FindStringSubmatch(said)[1]
	r.console(regexp.MustCompile(`http://\S+`).FindString(said))
	_, tries, _ := strings.Cut(said, "Three things to try:")
	for _, found := range regexp.MustCompile(`(?m) ((?:kubectl|bin/joinerctl) \S.*)$`).FindAllStringSubmatch(tries,
		-1) {
		if !strings.HasSuffix(found[1], "...") {
			r.tries = append(r.tries, found[1])
		}
	}
	const fewest = 3
	if len(r.tries) < fewest {
		r.t.Errorf("make up prints %q to try; want %d things", r.tries, fewest)
	}
}

// console opens the address in a browser of sorts.
func (r *reader) console(address string) {
	r.eventually("the console at "+address, func() (bool, string) {
		answer, err := http.Get(address)
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		kind := answer.Header.Get("Content-Type")
		return answer.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/html"), answer.Status + " " + kind
	})
}

// work types the second block: pods get nodes. The watch is stopped once it has shown a ready NodeClaim.
func (r *reader) work(b block) {
	for _, line := range b.commands() {
		r.typing = append(r.typing, line)
		if !strings.Contains(line, "--watch") {
			r.works(line)
			continue
		}
		watch := r.start(line)
		ready := regexp.MustCompile(`\sTrue\s`)
		watch.until(r.t, ready.MatchString)
		watch.interrupt()
		watch.ended()
	}
	r.works("kubectl rollout status deployment web --timeout=4m")
	for _, condition := range []string{"Launched", "Registered", "Initialized"} { // the words of the page
		if !strings.Contains(r.page, condition) {
			r.t.Errorf("%s does not speak of %s any more", quickstart, condition)
		}
		r.works("kubectl wait nodeclaims --all --for=condition=" + condition + " --timeout=2m")
	}
	r.try()
}

// try types what make up has printed, except what was already typed from the page.
func (r *reader) try() {
	for _, line := range r.tries {
		if slices.Contains(r.typing, line) {
			continue
		}
		want := map[string]string{"status": "default", "explain": "waits: PodTooLarge", "simulate": "nodes"}
		words := strings.Fields(line)
		if words[0] == "kubectl" {
			r.works(line)
			continue
		}
		r.eventually(line+" to say "+want[words[1]], func() (bool, string) {
			said, code := r.typed(line)
			return code < 2 && strings.Contains(said, want[words[1]]), said
		})
	}
}

// makeUpEC2 is the same with instances. What it prints names what to export for both sides.
func (r *reader) makeUpEC2(b block) {
	up := r.inFront(b.first(), "ec2")
	said := up.until(r.t, func(line string) bool { return strings.HasPrefix(line, "Ctrl-C stops it") })
	for _, part := range []string{"export KUBECONFIG=", "AWS_ENDPOINT_URL", "aws "} {
		if !strings.Contains(said, part) {
			r.t.Errorf("make up PROVIDER=ec2 does not say %q:\n%s", part, said)
		}
	}
	r.stop(up, "ec2")
}

// apply applies the manifest as it is.
func (r *reader) apply(b block) {
	r.script("manifest", "cat <<'END'\n"+b.text+"END\n")
	r.script("apply", "manifest | kubectl apply --dry-run=server -f -\n")
	if said := r.works("apply"); !strings.Contains(said, "nodepool.karpenter.sh/default") {
		r.t.Errorf("kubectl apply says %s", said)
	}
}

// event compares the page's event about a waiting pod with the real one.
func (r *reader) event(b block) {
	r.eventually("the event that the page shows", func() (bool, string) {
		said := r.works(
			"kubectl get events --field-selector=reason=FailedScheduling -o jsonpath='{.items[*].message}'")
		return strings.Contains(unfolded(said), unfolded(b.text)), said
	})
}

// between types the commands between words, in the order of what they do: explain, and scale to zero.
func (r *reader) between() {
	r.works("kubectl delete deployment large") // what make up had typed keeps a node
	pieces := inline(r.page)
	const explain, scale = "kubectl explain nodepool.spec", "kubectl scale deployment web --replicas=0"
	for _, line := range []string{explain, scale} {
		if !slices.Contains(pieces, line) {
			r.t.Errorf("%s does not say `%s` any more", quickstart, line)
		}
		r.works(line)
	}
	r.eventually("all nodes to be drained and gone", func() (bool, string) {
		said := r.works("kubectl get nodes,nodeclaims -o name")
		return strings.TrimSpace(said) == "" || strings.HasPrefix(said, "No resources"), said
	})
}

// stop presses Ctrl-C: the cluster stops, and its state stays.
func (r *reader) stop(up *running, state string) {
	up.interrupt()
	if code := up.ended(); code != 0 {
		r.t.Errorf("make up ended with %d after Ctrl-C: %s", code, up.errors.String())
	}
	for _, process := range r.processes() {
		if strings.Contains(process, r.tmp+"/"+state) {
			r.t.Errorf("left after Ctrl-C: %s", process)
		}
	}
}
