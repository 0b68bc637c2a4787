package main

import (
	"fmt"
	"go/build"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is the plan of the Go side, from the roof to the ground: a package may import the packages of ours that stand
// on a lower floor, and no others. Those on the ground import nothing of ours.
var house = [][]string{
	{"k6/cmd/k6"},
	{"k6"},
	{"."}, // the command bin/replay
	{"commands"},
	{"run", "same"},
	{"cli"},
	{"live", "members", "traffic"},
	{"engine"},
	{"engine/eventloop", "engine/netconn"},
	{"engine/exchange"},
	{"accesslog", "engine/punctual", "engine/target", "engine/wire", "forms", "origin", "record", "route", "schedule"},
	{"accesslog/formats", "redact", "served"},
}

// importEdge is one import of a package of ours by another.
type importEdge struct{ from, to string }

// forbiddenImports returns a sentence for each import that the plan does not allow.
func forbiddenImports(house [][]string, edges []importEdge) []string {
	floors := map[string]int{}
	for floor, packages := range house {
		for _, name := range packages {
			floors[name] = floor
		}
	}
	var wrong []string
	for _, e := range edges {
		from, knownFrom := floors[e.from]
		to, knownTo := floors[e.to]
		switch {
		case !knownFrom:
			wrong = append(wrong, fmt.Sprintf("%s stands on no floor: give it one in house_test.go", e.from))
		case !knownTo:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which stands on no floor: give it one in house_test.go",
				e.from, e.to))
		case from >= to:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, which does not stand below it", e.from, e.to))
		}
	}
	return wrong
}

func TestForbiddenImports(t *testing.T) {
	rows := []struct {
		why      string
		from, to string
		want     string
	}{
		{"down one floor", "run", "traffic", ""},
		{"down several floors", "run", "record", ""},
		{"k6 stands on top", "k6", "run", ""},
		{"up", "engine", "traffic", "engine imports traffic, which does not stand below it"},
		{"up inside the engine", "engine/wire", "engine/netconn", "engine/wire imports engine/netconn, which does not stand below it"},
		{"the ground imports nothing of ours", "route", "record", "route imports record, which does not stand below it"},
		{"nothing imports k6", ".", "k6", ". imports k6, which does not stand below it"},
		{"a new package needs a floor", "cache", "record", "cache stands on no floor: give it one in house_test.go"},
		{"also where it is imported", "run", "cache", "run imports cache, which stands on no floor: give it one in house_test.go"},
	}
	for _, row := range rows {
		if got := strings.Join(forbiddenImports(house, []importEdge{{row.from, row.to}}), "; "); got != row.want {
			t.Errorf("%s: %q, want %q", row.why, got, row.want)
		}
	}
}

const modulePath = "plimsoll/replay"

// within returns the folder of a package of ours, "." for the module's own.
func within(importPath string) (folder string, ours bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func edgesOf(from string, imports []string) []importEdge {
	var edges []importEdge
	for _, path := range imports {
		if to, ours := within(path); ours {
			edges = append(edges, importEdge{from, to})
		}
	}
	return edges
}

func TestImportsPointDown(t *testing.T) {
	list := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "./...")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %v", list, err)
	}
	var edges []importEdge
	found := []string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		from, _ := within(words[0])
		found = append(found, from)
		edges = append(edges, edgesOf(from, words[1:])...)
	}
	// k6 is a module of its own, whose many modules need not be there: its imports are read from its files.
	for _, folder := range []string{"k6", "k6/cmd/k6"} {
		p, err := build.ImportDir(filepath.FromSlash(folder), 0)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, folder)
		edges = append(edges, edgesOf(folder, p.Imports)...)
	}
	for _, wrong := range forbiddenImports(house, edges) {
		t.Error(wrong)
	}
	planned := slices.Concat(house...)
	slices.Sort(planned)
	slices.Sort(found)
	if !slices.Equal(found, planned) {
		t.Errorf("the packages are %v, and the plan in house_test.go has %v", found, planned)
	}
	if len(edges) < len(found) {
		t.Errorf("only %d imports were found among %d packages: is the list read as it is written?",
			len(edges), len(found))
	}
}
