// Command ec2tables writes the tables that the EC2 provider uses without asking AWS (E-26). prices.txt has the
// on-demand prices of instance types. branches.txt has their numbers of branch interfaces, which no API returns.
//
// Usage: ec2tables [-prices MODULE@VERSION] [-branches MODULE@VERSION] DIRECTORY
//
// The figures come from published Go modules, which the go command fetches and verifies. Their sources are parsed as
// data: nothing of them is built, linked or copied, so they are no dependencies. An unexpected form is an error. `make
// tables` runs it. No check does, since it needs the network. For other versions of the modules, change the flags'
// defaults here.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const (
	pricesFrom   = "github.com/aws/karpenter-provider-aws@v1.15.1"
	branchesFrom = "github.com/aws/amazon-vpc-resource-controller-k8s@v1.8.2"
	branchesFile = "pkg/aws/vpc/limits.go"
)

// priceFiles returns the files with prices, below pricesFrom. Each region is in one of them. Its currency is that of
// its partition.
func priceFiles() []string {
	var files []string
	for _, partition := range []string{"", "_us_gov", "_cn"} {
		files = append(files, "pkg/providers/pricing/zz_generated.pricing_aws"+partition+".go")
	}
	return files
}

func main() {
	prices := flag.String("prices", pricesFrom, "module and version with the prices")
	branches := flag.String("branches", branchesFrom, "module and version with the branch interfaces")
	flag.Parse()
	if err := run(*prices, *branches, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "ec2tables:", err)
		os.Exit(1)
	}
}

func run(prices, branches string, arguments []string) error {
	if len(arguments) != 1 {
		return errors.New("want one argument, the directory to write into")
	}
	written := map[string]*bytes.Buffer{"prices.txt": {}, "branches.txt": {}}
	from, err := fetch(prices)
	if err != nil {
		return err
	}
	var lists []priceList
	for _, name := range priceFiles() {
		more, err := readFile(from, name, readPrices)
		if err != nil {
			return err
		}
		lists = append(lists, more...)
	}
	if err := writePrices(written["prices.txt"], lists); err != nil {
		return err
	}
	if from, err = fetch(branches); err != nil {
		return err
	}
	limits, err := readFile(from, branchesFile, readBranches)
	if err != nil {
		return err
	}
	writeBranches(written["branches.txt"], limits)
	for name, content := range written {
		if err := os.WriteFile(filepath.Join(arguments[0], name), content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a file of a module.
func readFile[T any](m module, name string, read func(source, []byte) (T, error)) (T, error) {
	content, err := m.file(name)
	if err != nil {
		var none T
		return none, err
	}
	return read(source{module: m.name, version: m.version, sum: m.sum, file: name}, content)
}
