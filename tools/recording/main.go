// Command recording runs a program and keeps its output with times: `recording FOLDER NAME PROGRAM ARGS...` writes
// NAME.cast (asciicast v2, the source), NAME.txt and NAME.svg. If the program fails, nothing is written. Pauses are
// shortened, and the names of the machine and its folders are left out. Without a program, text and picture are made
// again from NAME.cast.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	const least = 3
	if len(os.Args) < least {
		fmt.Fprintln(os.Stderr, "usage: recording FOLDER NAME [PROGRAM ARGS...]")
		os.Exit(2)
	}
	lines, err := source(os.Args[1], os.Args[2], os.Args[least:])
	if err == nil {
		err = save(os.Args[1], os.Args[2], lines)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

// source returns the lines of a program that runs now or, without a program, those of the existing file.
func source(folder, name string, program []string) ([]line, error) {
	if len(program) > 0 {
		return record(program[0], program[1:]...)
	}
	cast, err := os.ReadFile(filepath.Join(folder, name+".cast"))
	if err != nil {
		return nil, err
	}
	return parseCast(cast)
}

// record runs a program, shows what it prints, and keeps it.
func record(program string, args ...string) ([]line, error) {
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // without one there is nothing to leave out
	var lines []line
	began, scanner := time.Now(), bufio.NewScanner(out)
	for scanner.Scan() {
		fmt.Println(scanner.Text())
		lines = append(lines, line{time.Since(began).Seconds(), anonymous(scanner.Text(), host)})
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	if err := command.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	return shortened(lines), nil
}

var temporary = regexp.MustCompile(`/\S*joiner-cluster-\d+`)

// anonymous returns a line without the machine's name and folders.
func anonymous(text, host string) string {
	text = temporary.ReplaceAllString(text, "(a temporary folder)")
	if host != "" {
		text = regexp.MustCompile(`leader `+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(text, "leader joiner-a")
	}
	return strings.TrimRight(text, " ")
}

// longest is the longest pause, in seconds.
const longest = 1.0

// shortened returns the lines with longer pauses cut.
func shortened(lines []line) (made []line) {
	cut, before := 0.0, 0.0
	for _, one := range lines {
		if pause := one.at - before; pause > longest {
			cut += pause - longest
		}
		before = one.at
		made = append(made, line{one.at - cut, one.text})
	}
	return made
}

func save(folder, name string, lines []line) error {
	cast, err := castOf(lines)
	if err != nil {
		return err
	}
	lines, err = parseCast(cast) // what is drawn is what the file says
	if err != nil {
		return err
	}
	for ending, content := range map[string][]byte{".cast": cast, ".txt": textOf(lines), ".svg": svgOf(lines)} {
		if err := os.WriteFile(filepath.Join(folder, name+ending), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
