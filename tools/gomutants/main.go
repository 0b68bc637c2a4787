// Gomutants writes a repeatable choice of mutants of Go packages, one JSON object a line, for tools/mutants.py:
//
//	gomutants SEED COUNT PACKAGE...
//
// Those are chosen whose keys have the smallest hashes. What no longer compiles is no mutant.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// change is one mutation of a syntax tree, and how it is taken back.
type change struct {
	operator string
	at       token.Pos
	do, undo func()
}

// mutant is a change of a declaration: its key, and where it is.
type mutant struct {
	Function string `json:"function"`
	Operator string `json:"operator"`
	Index    int    `json:"index"`
	Path     string `json:"path"`
	Line     int    `json:"line"`
	Text     string `json:"text"` // of the mutated file

	change
	file *ast.File
	in   *packages.Package
}

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: gomutants SEED COUNT PACKAGE...")
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	all, err := list(os.Args[3:])
	if err != nil {
		log.Fatal(err)
	}
	hash := func(m *mutant) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s go %s %s %d", os.Args[1], m.Function, m.Operator, m.Index))
		return string(sum[:])
	}
	slices.SortFunc(all, func(a, b *mutant) int { return cmp.Compare(hash(a), hash(b)) })
	out := json.NewEncoder(os.Stdout)
	for _, m := range all {
		if count > 0 && m.write() {
			count--
			if err := out.Encode(m); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// list returns all mutants of packages. Declarations of one name are distinguished by their order by text, not by
// place.
func list(patterns []string) ([]*mutant, error) {
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{Fset: fset, Mode: packages.LoadSyntax}, patterns...)
	if err != nil {
		return nil, err
	}
	if packages.PrintErrors(loaded) > 0 {
		return nil, fmt.Errorf("%v do not compile", patterns)
	}
	type declared struct {
		name, text string
		mutants    []*mutant
	}
	var declarations []declared
	for _, in := range loaded {
		for _, file := range in.Syntax {
			for _, node := range named(file) {
				var text bytes.Buffer
				if err := format.Node(&text, fset, node); err != nil {
					return nil, err
				}
				d := declared{name: name(node), text: text.String()}
				for _, c := range changes(node) {
					where := fset.Position(c.at)
					d.mutants = append(d.mutants, &mutant{
						Function: d.name, Operator: c.operator, Path: where.Filename, Line: where.Line, change: c, file: file, in: in,
					})
				}
				declarations = append(declarations, d)
			}
		}
	}
	slices.SortFunc(declarations, func(a, b declared) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.text, b.text))
	})
	var all []*mutant
	seen := map[[2]string]int{}
	for _, d := range declarations {
		for _, m := range d.mutants {
			key := [2]string{m.Function, m.Operator}
			m.Index = seen[key]
			seen[key]++
			all = append(all, m)
		}
	}
	return all, nil
}

// write writes the mutated file into the mutant, and reports whether its package compiles with it.
func (m *mutant) write() bool {
	m.do()
	defer m.undo()
	check := types.Config{Importer: m, Error: func(error) {}}
	if _, err := check.Check(m.in.PkgPath, m.in.Fset, m.in.Syntax, nil); err != nil {
		return false
	}
	var text bytes.Buffer
	if err := format.Node(&text, m.in.Fset, m.file); err != nil {
		return false
	}
	m.Text = text.String()
	return true
}

// Import returns a package that the mutant's imports, as types.Importer.
func (m *mutant) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return m.in.Imports[path].Types, nil
}

// named returns the functions, variables and constants of a file.
func named(file *ast.File) (nodes []ast.Node) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			nodes = append(nodes, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					nodes = append(nodes, value)
				}
			}
		}
	}
	return nodes
}

// name returns the name of a declaration, a method's with its type.
func name(node ast.Node) string {
	f, ok := node.(*ast.FuncDecl)
	if !ok {
		return node.(*ast.ValueSpec).Names[0].Name
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver, _, _ := strings.Cut(types.ExprString(f.Recv.List[0].Type), "[")
	return strings.TrimPrefix(receiver, "*") + "." + f.Name.Name
}

// What an operator, or one word, is replaced by.
var (
	others = map[token.Token][]token.Token{
		token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
		token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
		token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
		token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
		token.REM: {token.MUL}, token.AND: {token.OR}, token.OR: {token.AND}, token.SHL: {token.SHR}, token.SHR: {token.SHL},
		token.INC: {token.DEC}, token.DEC: {token.INC}, token.BREAK: {token.CONTINUE}, token.CONTINUE: {token.BREAK},
		token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN},
		token.OR_ASSIGN: {token.AND_ASSIGN}, token.AND_NOT_ASSIGN: {token.OR_ASSIGN},
	}
	words = map[string]string{"true": "false", "false": "true", "min": "max", "max": "min"}
)

// changes returns the mutations of a declaration in the order of its text.
func changes(node ast.Node) (all []change) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			all = append(all, swaps(&n.Op, n.OpPos)...)
		case *ast.IncDecStmt:
			all = append(all, swaps(&n.Tok, n.TokPos)...)
		case *ast.BranchStmt:
			all = append(all, swaps(&n.Tok, n.TokPos)...)
		case *ast.AssignStmt:
			all = append(all, swaps(&n.Tok, n.TokPos)...)
		case *ast.Ident:
			if other := words[n.Name]; other != "" {
				all = append(all, set(n.Name+" to "+other, n.Pos(), &n.Name, other))
			}
		case *ast.BasicLit:
			if value, err := strconv.ParseInt(n.Value, 0, 64); err == nil && n.Kind == token.INT {
				all = append(all, set("number", n.Pos(), &n.Value, strconv.FormatInt(value+1, 10)))
			}
		case *ast.IfStmt:
			all = append(all, set[ast.Expr]("negate", n.Cond.Pos(), &n.Cond, &ast.UnaryExpr{
				Op: token.NOT, X: &ast.ParenExpr{X: n.Cond},
			}))
		case *ast.BlockStmt:
			all = append(all, removals(n.List)...)
		case *ast.CaseClause:
			all = append(all, removals(n.Body)...)
		}
		return true
	})
	return all
}

func set[T any](operator string, at token.Pos, place *T, value T) change {
	was := *place
	return change{operator, at, func() { *place = value }, func() { *place = was }}
}

func swaps(place *token.Token, at token.Pos) (all []change) {
	for _, other := range others[*place] {
		all = append(all, set(place.String()+" to "+other.String(), at, place, other))
	}
	return all
}

// removals leave out one statement each.
func removals(list []ast.Stmt) (all []change) {
	for i, statement := range list {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt, *ast.IncDecStmt:
		default:
			continue
		}
		all = append(all, set[ast.Stmt]("remove", statement.Pos(), &list[i], &ast.EmptyStmt{Semicolon: statement.Pos()}))
	}
	return all
}
