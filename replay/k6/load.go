package k6

import (
	"encoding/json"
	"runtime/debug"
	"slices"
	"strings"

	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/fsext"
	"go.k6.io/k6/output"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
)

// Options of k6 that shape no load: where it goes, which share an instance has, and what is made of the results.
var shapelessOptions = []string{
	"hosts", "insecureSkipTLSVerify", "executionSegment", "executionSegmentSequence", "cloud", "ext", "httpDebug", "tags",
	"systemTags", "thresholds", "summaryTrendStats", "summaryTimeUnit", "metricSamplesBufferSize",
}

// Variables of ours that shape no load.
var shapelessVariables = []string{"PLIMSOLL_TARGET", "PLIMSOLL_BACKEND", "PLIMSOLL_REPEAT", "PLIMSOLL_SCENARIO"}

// load returns all that is known to shape the load of a script: the script, k6's options, and the variables that were
// given to it. Options and variables may be secret, so they stand as digests. A script sets the time-outs of its
// requests itself, so that of all is not known.
func load(params output.Params, args []string) (*record.Load, error) {
	options, err := optionDigests(params.ScriptOptions)
	if err != nil {
		return nil, err
	}
	return record.NewLoad(map[string]any{
		"program": "k6", "program_version": run.Version, "k6_version": k6Version(),
		"script_sha256": scriptDigest(params), "options": options,
		"variables": variableDigests(params.Environment, args), "timeout_s": nil,
	})
}

func optionDigests(options lib.Options) (map[string]string, error) {
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for name, value := range values {
		if string(value) != "null" && !slices.Contains(shapelessOptions, name) {
			digests[name] = record.Digest(value)
		}
	}
	return digests, nil
}

// variableDigests returns the digests of the variables that were given with -e, and of ours. The target stands in none
// of them, since the same load may go elsewhere.
func variableDigests(environment map[string]string, args []string) map[string]string {
	values := map[string]string{}
	for name, value := range environment {
		if strings.HasPrefix(name, "PLIMSOLL_") {
			values[name] = value
		}
	}
	for i, arg := range args {
		given, found := strings.CutPrefix(arg, "--env=")
		switch {
		case found:
		case (arg == "-e" || arg == "--env") && i+1 < len(args):
			given = args[i+1]
		case strings.HasPrefix(arg, "-e"):
			given = arg[len("-e"):]
		}
		if name, value, found := strings.Cut(given, "="); found {
			values[name] = value
		}
	}
	target := environment["PLIMSOLL_TARGET"]
	digests := map[string]string{}
	for name, value := range values {
		if slices.Contains(shapelessVariables, name) {
			continue
		}
		if target != "" {
			value = strings.ReplaceAll(value, target, "PLIMSOLL_TARGET")
		}
		digests[name] = record.Digest([]byte(value))
	}
	return digests
}

// scriptDigest returns that of the script, without what it imports; null where it cannot be read again.
func scriptDigest(params output.Params) any {
	if params.ScriptPath == nil || params.FS == nil {
		return nil
	}
	text, err := fsext.ReadFile(params.FS, params.ScriptPath.Path)
	if err != nil {
		return nil
	}
	return record.Digest(text)
}

// k6Version returns the version of k6 that is built in; null where the program does not say.
func k6Version() any {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, module := range info.Deps {
		if module.Path == "go.k6.io/k6" {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return nil
}
