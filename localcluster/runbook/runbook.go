// Package runbook reads the commands of the runbook pages, so that tests can run them on a real API server.
package runbook

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Command is one kubectl command of a page, without its first word and without what it is piped into.
type Command struct {
	Page string
	// Guest says that it is for the hosted cluster: the page says --kubeconfig guest, which is left out of Arguments.
	Guest     bool
	Arguments []string
}

// Commands returns the commands of the matching pages, with names in place of the pages' placeholders.
func Commands(pattern string, names map[string]string) ([]Command, error) {
	pages, err := filepath.Glob(pattern)
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("pages %s: found %d, error %v", pattern, len(pages), err)
	}
	var all []Command
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		for i, block := range strings.Split(string(content), "```") {
			lines, shell := strings.CutPrefix(block, "sh\n")
			if i%2 == 0 || !shell {
				continue
			}
			for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
				command, _, _ := strings.Cut(line, " | ")
				words := split(command)
				if words[0] != "kubectl" {
					return nil, fmt.Errorf("%s: %s is no kubectl", page, command)
				}
				all = append(all, read(filepath.Base(page), words[1:], names))
			}
		}
	}
	return all, nil
}

func read(page string, words []string, names map[string]string) Command {
	command := Command{Page: page}
	if i := slices.Index(words, "--kubeconfig"); i >= 0 {
		command.Guest = true
		words = slices.Delete(words, i, i+2)
	}
	for _, word := range words {
		for placeholder, name := range names {
			word = strings.ReplaceAll(word, placeholder, name)
		}
		command.Arguments = append(command.Arguments, word)
	}
	return command
}

// split splits a line into words like a shell, with support for single quotes only.
func split(line string) []string {
	var words []string
	word, quoted, begun := strings.Builder{}, false, false
	for _, sign := range line {
		switch {
		case sign == '\'':
			quoted, begun = !quoted, true
		case sign == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(sign)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// notHere are answers to correct commands on a cluster without the objects concerned: objects of charts that a test
// does not install, the Prometheus operator, and rights that nobody has.
var notHere = []string{
	"(NotFound)", "not found", `the server doesn't have a resource type "podmonitors"`, "\nno\n",
}

// Fine reports whether kubectl understood a command, and the API server knows its kinds.
func Fine(output string, err error) bool {
	return err == nil || slices.ContainsFunc(notHere, func(answer string) bool {
		return strings.Contains("\n"+output+"\n"+err.Error()+"\n", answer)
	})
}
