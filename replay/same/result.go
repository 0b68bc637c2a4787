package same

// The result: counts, verdict, files, and the text that is printed.

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plimsoll/replay/record"
	"plimsoll/replay/redact"
)

// The files of a result.
const (
	ResultFile = "same.json"
	TextFile   = "same.txt"
	PagesFile  = "pages.jsonl"
)

// The verdicts on two sites.
const (
	VerdictSame         = "same"
	VerdictDifferent    = "different"
	VerdictInconclusive = "inconclusive"
)

// MostUncompared is the share of the pages that may have been not comparable in sites that are called the same.
const MostUncompared = 0.01

// mostShown is how many pages a result shows; pages.jsonl has all.
const mostShown = 100

// longestPath is how much is kept of a target.
const longestPath = 2000

// Result is what a comparison found, as it stands in same.json (docs/same.md).
type Result struct {
	Format    int            `json:"format"`
	Status    record.Status  `json:"status"`
	Reason    *string        `json:"reason"`
	Verdict   string         `json:"verdict"`
	Says      string         `json:"says"`
	StartedAt record.Instant `json:"started_at"`
	EndedAt   record.Instant `json:"ended_at"`
	Baseline  Side           `json:"baseline"`
	Candidate Side           `json:"candidate"`
	Logs      []record.Log   `json:"logs"`
	Contents  any            `json:"contents"`
	Settings  map[string]any `json:"settings"`
	Command   []string       `json:"command"`
	Program   record.Program `json:"program"`
	Chosen    Chosen         `json:"chosen"`
	Pages     Pages          `json:"pages"`
	Shown     []Finding      `json:"shown"`
}

// Side is one of the two sites.
type Side struct {
	URL       string   `json:"url"`
	ConnectTo *string  `json:"connect_to"`
	Addresses []string `json:"addresses"`
}

// Pages counts pages by what became of them.
type Pages struct {
	Total       uint64            `json:"total"` // to compare
	Same        uint64            `json:"same"`
	Good        uint64            `json:"same_2xx"` // of Same, those with a status of 2xx
	Different   uint64            `json:"different"`
	NotCompared uint64            `json:"not_compared"`
	Unseen      uint64            `json:"unseen"` // the comparison ended before
	ByKind      map[string]uint64 `json:"different_by_kind"`
}

// Finding is a page that is not the same, or was not compared. Its texts are hostile.
type Finding struct {
	Path      string `json:"path"`
	Outcome   string `json:"outcome"` // different, not compared
	Kind      Kind   `json:"kind,omitempty"`
	Header    string `json:"header,omitempty"`
	Where     string `json:"where,omitempty"`
	Baseline  string `json:"baseline,omitempty"`
	Candidate string `json:"candidate,omitempty"`
	Why       string `json:"why,omitempty"`
	Looks     int    `json:"looks"`
}

// Finding returns what is to be said of a page; false where it is the same. Secrets in a query are not kept.
func (p Page) Finding() (Finding, bool) {
	v := p.verdict
	f := Finding{Path: redact.Args([]string{p.Path})[0], Looks: p.Looks}
	if len(f.Path) > longestPath {
		f.Path = f.Path[:longestPath] + "…"
	}
	switch v.outcome {
	case alike:
		return f, false
	case unknown:
		f.Outcome, f.Why = "not compared", v.why
		return f, true
	}
	shown := redact.Args(v.shown[:])
	f.Outcome, f.Kind, f.Header, f.Where = "different", v.kind, v.header, v.where
	f.Baseline, f.Candidate = shown[0], shown[1]
	return f, true
}

// Add counts a page, and returns what is to be said of it; false where it is the same.
func (r *Result) Add(p Page) (Finding, bool) {
	f, notable := p.Finding()
	switch {
	case !notable:
		r.Pages.Same++
		if p.Status/100 == 2 {
			r.Pages.Good++
		}
		return f, false
	case f.Outcome == "different":
		r.Pages.Different++
		r.Pages.ByKind[string(f.Kind)]++
	default:
		r.Pages.NotCompared++
	}
	r.show(f)
	return f, true
}

// show keeps the first findings, those that differ before those that were not compared.
func (r *Result) show(f Finding) {
	if len(r.Shown) < mostShown {
		r.Shown = append(r.Shown, f)
		return
	}
	if f.Outcome != "different" {
		return
	}
	for i := range r.Shown {
		if r.Shown[i].Outcome != "different" {
			r.Shown[i] = f
			return
		}
	}
}

// Conclude sets how the comparison ended, and its verdict. Err is why it ended early, or nil.
func (r *Result) Conclude(err error, interrupted bool) {
	r.EndedAt = record.Instant{Time: time.Now().UTC()}
	r.Status = record.Complete
	if err != nil {
		reason := err.Error()
		r.Reason, r.Status = &reason, record.Failed
		if interrupted {
			r.Status = record.Interrupted
		}
	}
	p := &r.Pages
	p.Unseen = p.Total - min(p.Total, p.Same+p.Different+p.NotCompared)
	r.Verdict, r.Says = p.verdict(r.Status, r.Reason)
}

// verdict returns what the counts come to. A page that differs is one that differs, whatever else was not seen.
func (p *Pages) verdict(status record.Status, reason *string) (verdict, says string) {
	seen := p.Same + p.Different + p.NotCompared
	switch {
	case p.Different > 0:
		return VerdictDifferent, fmt.Sprintf("%d of %d pages differ", p.Different, seen)
	case status != record.Complete:
		return VerdictInconclusive, fmt.Sprintf("%d of %d pages were seen: %s", seen, p.Total, *reason)
	case seen == 0:
		return VerdictInconclusive, "there was no page to compare"
	case float64(p.NotCompared) > MostUncompared*float64(seen):
		return VerdictInconclusive, fmt.Sprintf("%d of %d pages could not be compared, which is over %g %%", p.NotCompared, seen, 100*MostUncompared)
	case p.Good == 0:
		return VerdictInconclusive, "not one page has a status of 200 to 299, on either side: are these the sites of the log?"
	}
	return VerdictSame, fmt.Sprintf("%d of %d pages are the same", p.Same, seen)
}

// Folder is where a result is written: the pages as they are found, so that a kill leaves them, the rest at the end.
type Folder struct {
	path  string
	pages *os.File
	err   error // of writing a page
}

// CreateFolder makes the folder, and writes that the comparison is under way.
func CreateFolder(path string, r *Result) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder %s (%w): choose another one with --out", path, err)
	}
	pages, err := os.OpenFile(filepath.Join(path, PagesFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write to %s (%w): choose another folder with --out", path, err)
	}
	f := &Folder{path: path, pages: pages}
	if err := record.ReplaceJSON(filepath.Join(f.path, ResultFile), r); err != nil {
		return nil, errors.Join(err, pages.Close())
	}
	return f, nil
}

// Path returns the folder.
func (f *Folder) Path() string { return f.path }

// Add appends a page.
func (f *Folder) Add(page Finding) {
	line, err := json.Marshal(page)
	if err == nil {
		_, err = f.pages.Write(append(line, '\n'))
	}
	if f.err == nil && err != nil {
		f.err = fmt.Errorf("cannot write %s (%w): make room, then compare again", filepath.Join(f.path, PagesFile), err)
	}
}

// Err returns what went wrong when a page was written.
func (f *Folder) Err() error { return f.err }

// Close writes the result, and its text.
func (f *Folder) Close(r *Result, text string) error {
	return errors.Join(f.pages.Close(), record.ReplaceJSON(filepath.Join(f.path, ResultFile), r), record.ReplaceFile(filepath.Join(f.path, TextFile), []byte(text)))
}

// WriteText returns a result as a text: the verdict, the first pages that differ, the counts. Its texts are hostile.
func (r *Result) WriteText(most int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", strings.ToUpper(r.Verdict), r.Says)
	fmt.Fprintf(&out, "baseline %s, candidate %s\n", r.Baseline.name(), r.Candidate.name())
	for i, f := range r.Shown {
		if i == most {
			break
		}
		out.WriteString("\n" + f.text())
	}
	if left := r.Pages.Different + r.Pages.NotCompared; left > uint64(min(most, len(r.Shown))) {
		fmt.Fprintf(&out, "\n… all %d of them are in %s\n", left, PagesFile)
	}
	fmt.Fprintf(&out, "\npages: %d the same (%d of them with status 2xx), %d different, %d not compared, %d not seen\n",
		r.Pages.Same, r.Pages.Good, r.Pages.Different, r.Pages.NotCompared, r.Pages.Unseen)
	if len(r.Pages.ByKind) > 0 {
		fmt.Fprintf(&out, "different in: %s\n", counts(r.Pages.ByKind))
	}
	if len(r.Chosen.LeftOut) > 0 {
		fmt.Fprintf(&out, "left out: %s\n", counts(r.Chosen.LeftOut))
	}
	return out.String()
}

func (s Side) name() string {
	if s.ConnectTo != nil {
		return s.URL + " at " + *s.ConnectTo
	}
	return s.URL
}

func (f Finding) text() string {
	if f.Outcome != "different" {
		return fmt.Sprintf("not compared: %s\n  %s\n", f.Path, f.Why)
	}
	what := string(f.Kind)
	for _, more := range []string{f.Header, f.Where} {
		if more != "" {
			what += ", " + more
		}
	}
	return fmt.Sprintf("%s: %s\n  baseline:  %s\n  candidate: %s\n", what, f.Path, f.Baseline, f.Candidate)
}

func counts(of map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], strings.ReplaceAll(name, "_", " ")))
	}
	return strings.Join(parts, ", ")
}
