package accesslog

import "bytes"

// runJSON runs the programs of a JSON format over a line.
func (f *Format) runJSON(line []byte, r *Request) *Mismatch {
	f.json.arena, f.json.request, f.json.rejected = f.arena, r, nil
	why, finished := f.json.scan(line, f)
	f.arena = f.json.arena
	if !finished && why == "" {
		return f.json.rejected
	}
	if why != "" {
		f.reject = Mismatch{Specifier: "{", Column: f.json.pos + 1, Why: why}
		return &f.reject
	}
	return nil
}

// jsonValue runs the program that a JSON format has for a key.
func (f *Format) jsonValue(key, value []byte, base int) bool {
	if n := bytes.IndexByte(value, 0); n >= 0 {
		value = value[:n]
	}
	ops, ok := f.keys[string(key)]
	if !ok || len(value) == 0 {
		return true
	}
	f.json.rejected = f.run(ops, value, base, f.json.request)
	return f.json.rejected == nil
}

// compileJSON compiles a log-format that is a JSON text: the formats of the values at its keys.
func (p *program) compileJSON() []error {
	c := jsonCompiler{program: p}
	p.keys = map[string][]op{}
	var j jsonScanner
	if why, finished := j.scan([]byte(p.log), &c); !finished || j.peek() != 0 {
		if why == "" {
			why = "is not JSON: text follows the closing brace"
		}
		return []error{&FormatError{Format: p.name, Column: j.pos + 1, Why: "it " + why}}
	}
	var all []op
	for _, ops := range p.keys {
		all = append(all, ops...)
	}
	return append(c.errs, missing(p.name, p.log, all)...)
}

type jsonCompiler struct {
	*program
	errs []error
}

func (c *jsonCompiler) jsonValue(key, value []byte, base int) bool {
	ops, errs := compileOps(string(value))
	c.errs = append(c.errs, errs...)
	if c.clientKey != "" && string(key) == c.clientKey {
		ops[0].overrides = true
	}
	c.keys[string(key)] = ops
	return true
}
