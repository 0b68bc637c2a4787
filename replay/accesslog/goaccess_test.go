package accesslog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/replay/accesslog/formats"
)

// The tests in this file hold the package against the real goaccess: Debian 12's 1.7. Later versions, 1.11 among them,
// differ:
//   - They know TRAEFIKCLF, and skip the field of a repeated specifier, as this package does; 1.7 stays where it is, so
//     that the formats compared here repeat none.
//   - They read Caddy's client_ip, and a status 0.
//   - They accept listed statuses only; 1.7 and this package accept 100 to 599. Balancers log 460 and 561.

// summary is what is compared.
type summary struct {
	Valid, Failed uint64
	Bytes         int64
	Status        map[string]uint64 // by class: goaccess has no name for the codes that it does not list
	Method        map[string]uint64
	Protocol      map[string]uint64
	Host          map[string]uint64
	Hour          map[string]uint64
}

func newSummary() summary {
	return summary{
		Status: map[string]uint64{}, Method: map[string]uint64{}, Protocol: map[string]uint64{},
		Host: map[string]uint64{}, Hour: map[string]uint64{},
	}
}

// needGoaccess skips the test without goaccess, except where it has to be there.
func needGoaccess(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("goaccess")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" && os.Getenv("PLIMSOLL_LAB") == "1" {
		t.Fatal("goaccess is not installed, and CI=true PLIMSOLL_LAB=1 says that it has to be")
	}
	t.Skip("goaccess is not installed: apt-get install goaccess")
	return ""
}

type goaccessPanel struct {
	Data []struct {
		Hits     struct{ Count uint64 }
		Data     string
		Method   string
		Protocol string
		Items    []struct{ Hits struct{ Count uint64 } }
	}
}

// runGoaccess asks goaccess.
func runGoaccess(t *testing.T, spec Spec, log []byte) summary {
	t.Helper()
	path := needGoaccess(t)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "access.log"), filepath.Join(dir, "out.json")
	if err := os.WriteFile(in, log, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		in, "--no-global-config", "--no-ip-validation", "--num-tests=0", "--no-progress", "--max-items=100000",
		"--http-method=yes", "--http-protocol=yes", "--log-format=" + spec.Log, "-o", out,
	}
	if spec.Date != "" {
		args = append(args, "--date-format="+spec.Date)
	}
	if spec.Time != "" {
		args = append(args, "--time-format="+spec.Time)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "LC_ALL=C", "HOME="+dir)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("goaccess: %v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return readGoaccess(t, text)
}

// readGoaccess sums up a report of goaccess in JSON.
func readGoaccess(t *testing.T, text []byte) summary {
	t.Helper()
	var answer struct {
		General struct {
			Valid  uint64 `json:"valid_requests"`
			Failed uint64 `json:"failed_requests"`
			Bytes  uint64 `json:"bandwidth"`
		}
		Requests, Hosts goaccessPanel
		Static          goaccessPanel `json:"static_requests"`
		NotFound        goaccessPanel `json:"not_found"`
		Status          goaccessPanel `json:"status_codes"`
		Time            goaccessPanel `json:"visit_time"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("goaccess wrote what is no JSON: %v", err)
	}
	s := newSummary()
	s.Valid, s.Failed, s.Bytes = answer.General.Valid, answer.General.Failed, int64(answer.General.Bytes)
	for _, panel := range []goaccessPanel{answer.Requests, answer.Static, answer.NotFound} {
		for _, d := range panel.Data {
			s.Method[d.Method] += d.Hits.Count
			s.Protocol[d.Protocol] += d.Hits.Count
		}
	}
	for _, d := range answer.Hosts.Data {
		s.Host[d.Data] += d.Hits.Count
	}
	for _, d := range answer.Status.Data {
		for _, item := range d.Items {
			s.Status[d.Data[:1]] += item.Hits.Count
		}
	}
	for _, d := range answer.Time.Data {
		s.Hour[d.Data] += d.Hits.Count
	}
	return s
}

// runOurs asks this package.
func runOurs(t *testing.T, spec Spec, log []byte) summary {
	t.Helper()
	f, err := Compile(spec)
	if err != nil {
		t.Fatal(err)
	}
	source, err := Open([]string{"-"}, bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	s := newSummary()
	opts := ReadOptions{MaxRejects: 1 << 30, OnReject: func(Reject) { s.Failed++ }}
	for batch, err := range source.Read(context.Background(), f, opts) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Requests {
			s.add(&r)
		}
		batch.Release()
	}
	return s
}

func (s *summary) add(r *Request) {
	s.Valid++
	s.Bytes += max(0, r.Bytes)
	if r.Status > 0 {
		s.Status[fmt.Sprint(r.Status/100)]++
	}
	s.Method[cmp.Or(strings.ToUpper(string(r.Method)), "---")]++
	s.Protocol[cmp.Or(strings.ToUpper(string(r.Protocol)), "---")]++
	host, _ := json.Marshal(string(r.Host)) // as it comes through goaccess's JSON
	var shown string
	_ = json.Unmarshal(host, &shown)
	s.Host[shown]++
	s.Hour[time.Unix(0, r.TimeNS+int64(r.OffsetS)*1e9).UTC().Format("15")]++
}

// compare fails the test where the two do not agree.
func compare(t *testing.T, ours, theirs summary) {
	t.Helper()
	if ours.Valid != theirs.Valid || ours.Failed != theirs.Failed {
		t.Errorf("valid/failed: ours %d/%d, goaccess %d/%d", ours.Valid, ours.Failed, theirs.Valid, theirs.Failed)
	}
	if ours.Bytes != theirs.Bytes {
		t.Errorf("bytes: ours %d, goaccess %d", ours.Bytes, theirs.Bytes)
	}
	for _, m := range []struct {
		name         string
		ours, theirs map[string]uint64
	}{
		{"status", ours.Status, theirs.Status}, {"method", ours.Method, theirs.Method}, {"protocol", ours.Protocol, theirs.Protocol},
		{"host", ours.Host, theirs.Host}, {"hour", ours.Hour, theirs.Hour},
	} {
		if maps.Equal(m.ours, m.theirs) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(merged(m.ours, m.theirs))) {
			if m.ours[key] != m.theirs[key] {
				t.Errorf("%s %q: ours %d, goaccess %d", m.name, key, m.ours[key], m.theirs[key])
			}
		}
	}
}

func merged(a, b map[string]uint64) map[string]uint64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// asGoaccess is the preset in goaccess's own words, where this package's differ.
func asGoaccess(preset string) Spec {
	switch preset {
	case "SQUID":
		return Spec{Log: `%^ %^ %^ %v %^: %x.%^ %~%L %h %^/%s %b %m %U`, Date: "%s", Time: "%s"}
	case "W3C": // goaccess does not read the log's #Fields
		return Spec{Log: `%d %t %^ %m %U %q %^ %^ %h %u %R %s %^ %^ %L`, Date: "%Y-%m-%d", Time: "%H:%M:%S"}
	}
	known := strings.Fields("COMBINED VCOMBINED COMMON VCOMMON CLOUDFRONT CLOUDSTORAGE AWSELB AWSALB AWSS3 CADDY TRAEFIKCLF")
	if f, _ := formats.Find(preset); !slices.Contains(known, preset) {
		return Spec{Log: f.Log, Date: f.Date, Time: f.Time}
	}
	return Spec{Log: preset}
}

// knownToGoaccess17 leaves out what goaccess 1.7 cannot read, or reads otherwise.
func knownToGoaccess17(preset string) bool {
	return !slices.ContainsFunc(samples, func(s sample) bool { return s.preset == preset && s.newer })
}

func TestGoaccessAgreesOnSamples(t *testing.T) {
	for _, s := range samples {
		t.Run(s.preset, func(t *testing.T) {
			if !knownToGoaccess17(s.preset) {
				t.Skip("goaccess 1.7 reads it otherwise")
			}
			log := []byte(strings.Join(s.lines, "\n") + "\n")
			spec := asGoaccess(s.preset)
			compare(t, runOurs(t, spec, log), runGoaccess(t, spec, log))
		})
	}
}

func TestGoaccessAgreesOnRealLogs(t *testing.T) {
	for _, preset := range Presets() {
		for _, path := range realLogs(t, preset) {
			t.Run(filepath.Base(path), func(t *testing.T) {
				if !knownToGoaccess17(preset) {
					t.Skip("goaccess 1.7 reads it otherwise")
				}
				log := readAll(t, path)
				spec := asGoaccess(preset)
				compare(t, runOurs(t, spec, log), runGoaccess(t, spec, log))
			})
		}
	}
}

// readAll unpacks a log, without the lines that goaccess would take for two.
func readAll(t *testing.T, path string) []byte {
	t.Helper()
	opened, err := openPath(path)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(opened.buffer); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for line := range bytes.Lines(text.Bytes()) {
		if len(line) < 4000 {
			out = append(out, line...)
		}
	}
	return out
}

// TestGoaccessAgreesOnNonsense breaks the samples in thousands of ways.
func TestGoaccessAgreesOnNonsense(t *testing.T) {
	needGoaccess(t)
	for _, s := range samples {
		if !knownToGoaccess17(s.preset) {
			continue
		}
		t.Run(s.preset, func(t *testing.T) {
			spec := asGoaccess(s.preset)
			log := nonsense(t, spec, s.lines, uint64(len(s.preset)))
			ours, theirs := runOurs(t, spec, log), runGoaccess(t, spec, log)
			compare(t, ours, theirs)
			if t.Failed() {
				culprits(t, spec, log)
			}
			if ours.Valid < 100 || ours.Failed < 100 {
				t.Errorf("the corpus tests little: %d valid, %d failed lines", ours.Valid, ours.Failed)
			}
		})
	}
}

// realLogs are the published logs that developers keep beside the project, by preset.
func realLogs(t *testing.T, preset string) []string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no published logs beside the project: ../shared/data")
	}
	found, _ := filepath.Glob(filepath.Join(dir, "*."+preset+".log*"))
	return found
}
