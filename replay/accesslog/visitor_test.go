package accesslog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheVisitorsAddressIsFoundInAnotherField: wherever it is in the line, and only where it is.
func TestTheVisitorsAddressIsFoundInAnotherField(t *testing.T) {
	const combined = `%[2]s - - [20/Nov/2026:10:00:00 +0000] "GET /%[3]d HTTP/1.1" 200 5 "-" "Mozilla/5.0 (X11)"`
	for _, row := range []struct{ says, line, flags string }{
		{"none", combined, ""},
		{"quoted, at the end", combined + ` "%[1]s"`, `--format '%^ %^[%d:%t %^] "%r" %s %b "%R" "%u" "~h{, }"' (make`},
		{"a list", combined + ` "%[1]s, 10.0.0.9"`, `"%u" "~h{, }"'`},
		{"bare", combined + ` %[1]s`, `"%u" ~h{, }'`},
		{"after other fields", combined + ` 0.005 "a b" [c d] "%[1]s" x`, `[%^] "~h{, }"'`},
		{"under a name", combined + ` rt=0.005 up="10.0.0.3:80" cf="%[1]s"`, `"%u" rt=%^ up="%^" cf="~h{, }"'`},
		{"in place of the user", strings.Replace(combined, "- -", "- %[1]s", 1), `--format '%^ ~h{, }[%d:%t`},
		{"of IPv6", combined + ` "2001:db8::%[3]d"`, `"%u" "~h{, }"'`},
		{"after a virtual host", "site.example:80 " + combined + ` "%[1]s"`, `--format '%v:%^ %^ %^[%d:%t %^] "%r" %s %b "%R" "%u" "~h{, }"'`},
		{"the same as the client", strings.Replace(combined, "%[2]s", "%[1]s", 1) + ` "%[1]s"`, ""},
		{"a backend that all share", combined + ` "10.0.0.3"`, ""},
		{"a backend with its port", combined + ` "10.0.0.%[3]d:80"`, ""},
		{"of a log whose clients are names: it is read wrongly", strings.Replace(combined, "%[2]s", "web%[3]d", 1) + ` "%[1]s"`, ""},
		{"a text of a client", combined + ` "from %[1]s"`, ""},
	} {
		found, ok := visitorsOf(t, row.line, Spec{})
		if ok != (row.flags != "") || ok && (!strings.Contains(found.Warning(), row.flags) || found.Addresses != 20 || found.Clients != 2) {
			t.Errorf("%s: %v, %+v", row.says, ok, found)
			if ok {
				t.Error(found.Warning())
			}
		}
	}
}

func TestTheVisitorsAddressIsFoundInJSON(t *testing.T) {
	spec := Spec{Log: `{"time":"%x","ip":"%h","request":"%r","status":"%s"}`}
	const line = `{"time":"2026-11-20T10:00:00+00:00","ip":"%[2]s","request":"GET /%[3]d HTTP/1.1","status":"200"`
	for _, row := range []struct{ says, line, has string }{
		{"at a key", line + `,"cf_connecting_ip":"%[1]s"}`, `"cf_connecting_ip":"~h{, }"`},
		{"within others, in a list", line + `,"request_headers":{"X-Forwarded-For":["%[1]s, 10.0.0.9"]}}`, `"request_headers":{"X-Forwarded-For":["~h{, }"]}`},
		{"nowhere", line + `,"upstream":"10.0.0.3"}`, ""},
	} {
		found, ok := visitorsOf(t, row.line, spec)
		if ok != (row.has != "") || ok && (!strings.Contains(found.Warning(), row.has) || found.Addresses != 20) {
			t.Errorf("%s: %v, %+v", row.says, ok, found)
		}
	}
	caddy := `{"ts":1763632800.5,"request":{"remote_ip":"%[2]s","proto":"HTTP/1.1","method":"GET","host":"a.example","uri":"/%[3]d",` +
		`"headers":{"X-Forwarded-For":["%[1]s"],"User-Agent":["UA"]}},"duration":0.01,"size":5,"status":200}`
	if found, ok := visitorsOf(t, caddy, Spec{}); !ok || found.Addresses != 20 {
		t.Errorf("Caddy: %v, %+v", ok, found)
	}
}

func TestLinesWithoutAVisitorsAddressAreSaid(t *testing.T) {
	const line = `%[2]s - - [20/Nov/2026:10:00:00 +0000] "GET /%[3]d HTTP/1.1" 200 5 "-" "UA" "%[1]s"`
	path := writeVisitors(t, line)
	text, _ := os.ReadFile(path)
	text = append(text, fmt.Sprintf(line, "-", "10.0.0.1", 1)+"\n"...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := Open([]string{path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, err := source.FormatFor(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := source.VisitorField(format); !ok || !strings.HasSuffix(found.Warning(), "; 1 of 21 lines have none and are then rejected") {
		t.Errorf("%v: %s", ok, found.Warning())
	}
}

// visitorsOf looks at a log of 20 visitors behind two addresses: the verbs of a line are the visitor, the address, a number.
func visitorsOf(t *testing.T, line string, spec Spec) (VisitorField, bool) {
	t.Helper()
	source, err := Open([]string{writeVisitors(t, line)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, err := source.FormatFor(spec)
	if err != nil {
		t.Fatal(err)
	}
	return source.VisitorField(format)
}

func writeVisitors(t *testing.T, line string) string {
	t.Helper()
	var text strings.Builder
	for i := range 20 {
		one := fmt.Sprintf(line, fmt.Sprintf("203.0.113.%d", i), fmt.Sprintf("10.0.0.%d", 1+i%2), i)
		one, _, _ = strings.Cut(one, "%!(EXTRA")
		text.WriteString(one + "\n")
	}
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
