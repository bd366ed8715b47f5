package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tiny is a module with one package, and tests that leave some changes alone.
var tiny = map[string]string{
	"go.mod": "module tiny\n\ngo 1.26\n",
	"shop/shop.go": `package shop

import (
	"errors"
	"time"
)

const window = 10 * time.Second

var errClosed = errors.New("closed")

type order struct {
	item  string
	count int
}

// Fits says whether an order fits into a box that is open.
func Fits(n, box int, open bool) bool { return n <= box && open }

// Late says whether the window is over.
func Late(d time.Duration) bool { return d >= window }

// Wait is how long the window still is; the constant is used again, as the last thing of a statement.
func Wait(d time.Duration) (left time.Duration) {
	if d == 0 {
		left = window
	}
	return left
}

// Sell takes an order.
func Sell(item string, count int, open bool) (order, error) {
	if !open {
		return order{}, errClosed
	}
	return order{item: item, count: count + 1}, nil
}

// Sum adds what is positive, up to the first zero.
func Sum(numbers []int) (total int) {
	for _, n := range numbers {
		if n < 0 {
			continue
		}
		if n == 0 {
			break
		}
		total += n
	}
	return total
}

// Grade is a switch whose cases all return, so that a break in one of them would not compile.
func Grade(n int) string {
	switch {
	case n > 3:
		n++
		return "good"
	default:
		return "bad"
	}
}

// Offer is a select: what a case waits for stays as it is.
func Offer(to chan int, n int) bool {
	select {
	case to <- n:
		return true
	default:
	}
	return false
}

// Unused is reached by no test.
func Unused(a, b int) int { return min(a, b) }
`,
	"shop/shop_test.go": `package shop

import (
	"testing"
	"time"
)

func TestFits(t *testing.T) {
	if !Fits(3, 3, true) || Fits(4, 3, true) || Fits(3, 3, false) {
		t.Fatal("fits")
	}
}

func TestLate(t *testing.T) {
	if Late(6 * time.Second) || !Late(15 * time.Second) {
		t.Fatal("late")
	}
}

func TestWait(t *testing.T) {
	if Wait(0) != window || Wait(1) != 0 {
		t.Fatal("wait")
	}
}

func TestSell(t *testing.T) {
	if o, err := Sell("tea", 1, true); err != nil || o.count != 2 {
		t.Fatal("sell")
	}
	if _, err := Sell("tea", 1, false); err == nil {
		t.Fatal("closed")
	}
}

func TestSum(t *testing.T) {
	if Sum([]int{1, -5, 2, 0, 7}) != 3 {
		t.Fatal("sum")
	}
}

func TestGrade(t *testing.T) {
	if Grade(4) != "good" || Grade(3) != "bad" {
		t.Fatal("grade")
	}
}

func TestOffer(t *testing.T) {
	to := make(chan int, 1)
	if !Offer(to, 1) || Offer(to, 2) || <-to != 1 {
		t.Fatal("offer")
	}
}
`,
}

func writeTiny(t *testing.T, list string) options {
	t.Helper()
	root := t.TempDir()
	for name, text := range tiny {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(root, "list.txt")
	if err := os.WriteFile(path, []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	return options{root: root, list: path}
}

// survivors of the tiny package: each is one that its tests cannot see, and no other.
var survivors = []string{
	"Grade: n++ -> (removed)",
	"Late: d >= window -> d > window",
	"Sell: item: item -> item: (nothing)",
	"Unused: min(a, b) -> max(a, b)",
	"Unused: return min(a, b) -> return (nothing)",
}

func TestTheSurvivorsAreThoseThatNoTestSees(t *testing.T) {
	o := writeTiny(t, "")
	result, err := try(o, subject{dir: "shop"}, &known{})
	if err != nil {
		t.Fatal(err)
	}
	var alive []string
	for _, m := range result.alive() {
		alive = append(alive, m.key())
	}
	slices.Sort(alive)
	if !slices.Equal(alive, survivors) {
		t.Errorf("alive:\n%s\nwant:\n%s", strings.Join(alive, "\n"), strings.Join(survivors, "\n"))
	}
	if len(result.unreached) != 2 {
		t.Errorf("%d are not reached, want the 2 of Unused", len(result.unreached))
	}
	if len(result.killed) < 25 {
		t.Errorf("only %d are killed", len(result.killed))
	}
	for _, m := range result.all {
		if m.was == "window" && !result.killed[m] {
			t.Errorf("%s survives", m.key())
		}
	}
}

// A list that names each survivor passes. A missing survivor fails, and so does an entry that does not survive.
func TestTheListIsHeld(t *testing.T) {
	list := "# head\n\npackage shop\n"
	for _, key := range survivors {
		list += "  " + key + "\n    equal: the test says so\n"
	}
	for _, c := range []struct {
		name, list string
		failed     bool
	}{
		{"complete", list, false},
		{"one is missing", strings.Replace(list, "  "+survivors[1]+"\n    equal: the test says so\n", "", 1), true},
		{"one is gone", list + "  Sum: nothing of the kind\n    open\n", true},
	} {
		failed, err := run(writeTiny(t, c.list), []string{"./shop/"})
		if err != nil || failed != c.failed {
			t.Errorf("%s: failed is %v (%v), want %v", c.name, failed, err, c.failed)
		}
	}
}

// Bringing the list up to date keeps the existing reasons and the head.
func TestTheListIsBroughtUpToDate(t *testing.T) {
	o := writeTiny(t, "# head\n\npackage shop\n  "+survivors[1]+"\n    equal: it is\n  Gone: a -> b\n    open\n")
	o.write = true
	if failed, err := run(o, []string{"shop"}); failed || err != nil {
		t.Fatalf("failed is %v (%v)", failed, err)
	}
	text, err := os.ReadFile(o.list)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for _, want := range []string{"# head\n", survivors[1] + "\n    equal: it is\n", survivors[0] + "\n    open\n",
		survivors[3] + "\n    open: no test gets there\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the list has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Gone") {
		t.Errorf("what is gone is still listed:\n%s", got)
	}
}

func TestABadListIsRefused(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"  a -> b\n    open\n", `list.txt:1: want "package"`},
		{"package shop\n  a -> b\n    equal\n", `list.txt:3: want "equal: " and a reason, or "open"`},
		{"package shop\n  a -> b\n", "has no reason"},
		{"package shop\n  a -> b\n    open\n  a -> b\n", "list.txt:4: this mutant stands there twice"},
		{"package shop\npackage shop\n", "list.txt:2: package shop stands there twice"},
	} {
		o := writeTiny(t, c.list)
		if _, err := run(o, []string{"shop"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.list, err, c.want)
		}
	}
}

// A package whose tests fail without any mutant proves nothing about mutants.
func TestTestsThatFailAnywayAreSaid(t *testing.T) {
	o := writeTiny(t, "")
	broken := strings.Replace(tiny["shop/shop_test.go"], `!= "good"`, `== "good"`, 1)
	if err := os.WriteFile(filepath.Join(o.root, "shop/shop_test.go"), []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := try(o, subject{dir: "shop"}, &known{}); err == nil || !strings.Contains(err.Error(), "TestGrade in") {
		t.Fatalf("%v, want TestGrade to be named", err)
	}
}
