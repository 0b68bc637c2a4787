package same

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
