package k6

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.k6.io/k6/lib"
	"go.k6.io/k6/lib/fsext"
	"go.k6.io/k6/output"
	"gopkg.in/guregu/null.v3"
)

func TestTheLoadOfAScript(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script.js")
	other := filepath.Join(t.TempDir(), "script.js")
	for path, text := range map[string]string{script: "one", other: "two"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	given := func(path string, options lib.Options, environment map[string]string) output.Params {
		return output.Params{
			FS: fsext.NewOsFs(), ScriptPath: &url.URL{Scheme: "file", Path: path}, ScriptOptions: options, Environment: environment,
		}
	}
	ten := lib.Options{VUs: null.IntFrom(10)}
	one := map[string]string{"PLIMSOLL_TARGET": "http://one"}
	base, err := load(given(script, ten, one), []string{"run", "-e", "PAGE=http://one/page", "s.js"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says   string
		params output.Params
		args   []string
		same   bool
	}{
		{"the same", given(script, ten, one), []string{"--env=PAGE=http://one/page"}, true},
		{"another target is the same load, also in a variable", given(script, ten, map[string]string{"PLIMSOLL_TARGET": "http://two"}),
			[]string{"-ePAGE=http://two/page"}, true},
		{"as is another backend, and what else is in the environment",
			given(script, ten, map[string]string{"PLIMSOLL_TARGET": "http://one", "PLIMSOLL_BACKEND": "b", "HOME": "/root"}),
			[]string{"--env", "PAGE=http://one/page"}, true},
		{"another page", given(script, ten, one), []string{"-e", "PAGE=http://one/other"}, false},
		{"another script", given(other, ten, one), []string{"-e", "PAGE=http://one/page"}, false},
		{"more users", given(script, lib.Options{VUs: null.IntFrom(11)}, one), []string{"-e", "PAGE=http://one/page"}, false},
		{"a setting of ours", given(script, ten, map[string]string{"PLIMSOLL_TARGET": "http://one", "PLIMSOLL_RATE": "5"}),
			[]string{"-e", "PAGE=http://one/page"}, false},
		{"where names lead", given(script, lib.Options{VUs: null.IntFrom(10), InsecureSkipTLSVerify: null.BoolFrom(true)}, one),
			[]string{"-e", "PAGE=http://one/page"}, true},
	} {
		got, err := load(c.params, c.args)
		if err != nil {
			t.Fatal(err)
		}
		if (got.Digest == base.Digest) != c.same {
			t.Errorf("%s: %v, and %v", c.says, got.Settings, base.Settings)
		}
	}
	if timeout, there := base.Settings["timeout_s"]; !there || timeout != nil {
		t.Errorf("the time-out is %v", timeout)
	}
}
