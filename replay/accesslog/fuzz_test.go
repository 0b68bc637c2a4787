package accesslog

import (
	"bytes"
	"testing"
	"unsafe"

	"plimsoll/replay/accesslog/formats"
)

// FuzzCompile feeds nonsense to the format compiler: it has to answer, and what it accepts has to run.
func FuzzCompile(f *testing.F) {
	for _, p := range formats.Named {
		f.Add(p.Log, p.Date, p.Time, "", sampleOf("COMBINED").lines[0])
	}
	for _, c := range customFormats {
		f.Add(c.spec.Log, c.spec.Date, c.spec.Time, "", c.lines[0])
	}
	f.Add(`%h %x %r \t %%h~h{a}`, "%", "%*%f", "%c", "\\\\")
	f.Fuzz(func(t *testing.T, log, date, clock, dateTime, line string) {
		format, err := Compile(Spec{Log: log, Date: date, Time: clock, DateTime: dateTime})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if format.Resolution() <= 0 {
			t.Error("no resolution")
		}
		checkParse(t, format, []byte(line))
	})
}

// FuzzParseLine feeds nonsense to the parsers of all presets.
func FuzzParseLine(f *testing.F) {
	var compiled []*Format
	for i, s := range samples {
		compiled = append(compiled, mustCompile(f, Spec{Log: s.preset}), mustCompile(f, Spec{Log: s.preset, StrictHosts: true}))
		for _, line := range s.lines {
			f.Add(uint8(2*i), []byte(line))
		}
	}
	for i, c := range customFormats {
		compiled = append(compiled, mustCompile(f, c.spec))
		for _, line := range c.lines {
			f.Add(uint8(2*len(samples)+i), []byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, line []byte) {
		format := compiled[int(which)%len(compiled)]
		checkParse(t, format, line)
		for _, log := range format.candidates(line) {
			if other, err := Compile(Spec{Log: log}); err == nil {
				checkParse(t, other, line)
			}
		}
	})
}

// checkParse checks what holds for any line: parsing it twice gives the same, also after another line; the views lie
// in the line or in the parser's scratch space; a reject has a place and a reason.
func checkParse(t *testing.T, f *Format, line []byte) {
	t.Helper()
	before := bytes.Clone(line)
	var first, again Request
	// With room for all that one line can need, the arena is not outgrown meanwhile, and what was in it lies there
	// still.
	f.arena = make([]byte, 0, 4*len(line)+64)
	f.json.arena = nil
	reject := f.Parse(line, &first).copied()
	fields := fieldsOf(&first)
	for _, view := range [][]byte{first.Host, first.VHost, first.Method, first.Target, first.Protocol, first.Referer, first.UserAgent} {
		if !within(view, line) && !within(view, f.arena) {
			t.Fatalf("%q lies nowhere", view)
		}
	}
	f.Parse([]byte("something else"), new(Request))
	if f.Parse(line, &again).copied() != reject || fieldsOf(&again) != fields || again.TimeNS != first.TimeNS {
		t.Fatalf("%q is read otherwise the second time", line)
	}
	if clone := f.Clone(); clone.Parse(line, &again).copied() != reject || fieldsOf(&again) != fields {
		t.Fatalf("%q is read otherwise by a clone", line)
	}
	if !bytes.Equal(line, before) {
		t.Fatal("the line was changed")
	}
	if reject != "" {
		return
	}
	if first.Host == nil || first.Target == nil || first.Status != 0 && (first.Status < 100 || first.Status > 599) ||
		first.Bytes < -1 || first.DurationNS < -1 || first.TimeNS < -1e15 {
		t.Fatalf("%q is no request: %+v", line, first)
	}
}

// copied is what a Mismatch says, "" for none.
func (r *Mismatch) copied() string {
	if r == nil {
		return ""
	}
	return r.Error()
}

func within(view, whole []byte) bool {
	if len(view) == 0 {
		return true
	}
	if len(whole) == 0 {
		return false
	}
	start, at := uintptr(unsafe.Pointer(&whole[0])), uintptr(unsafe.Pointer(&view[0]))
	return at >= start && at+uintptr(len(view)) <= start+uintptr(len(whole))
}

func TestParseAllocatesNothing(t *testing.T) {
	for _, s := range samples {
		for _, strict := range []bool{false, true} {
			f := mustCompile(t, Spec{Log: s.preset, StrictHosts: strict})
			for _, line := range s.lines {
				text := []byte(line)
				var r Request
				if n := testing.AllocsPerRun(20, func() { f.Parse(text, &r) }); n > 0 {
					t.Errorf("%s, strict %v: %v allocations for %q", s.preset, strict, n, line)
				}
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, s := range samples {
		b.Run(s.preset, func(b *testing.B) {
			f := mustCompile(b, Spec{Log: s.preset})
			line := []byte(s.lines[0])
			if Ignored(line) {
				line = []byte(s.lines[2])
			}
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			var r Request
			for b.Loop() {
				if reject := f.Parse(line, &r); reject != nil {
					b.Fatal(reject)
				}
			}
		})
	}
}
