package record

import "testing"

func TestLoadsOfTheSameSettingsHaveOneDigest(t *testing.T) {
	base := map[string]any{"timeout_s": 30.0, "include": []string{"<a>&b"}, "users": nil}
	// Of {"include":["<a>&b"],"timeout_s":30,"users":null}, by sha256sum.
	const want = "7c20168902366cf11c1d3f08abbb936efb1eaacfc74bb40c6536f3253425ee8c"
	for _, c := range []struct {
		why      string
		settings map[string]any
		same     bool
	}{
		{"the same settings", base, true},
		{"the order in which they were given says nothing", map[string]any{"users": nil, "include": []string{"<a>&b"}, "timeout_s": 30.0}, true},
		{"another value is another load", map[string]any{"timeout_s": 1.0, "include": []string{"<a>&b"}, "users": nil}, false},
		{"none is not null", map[string]any{"timeout_s": 30.0, "include": []string{"<a>&b"}}, false},
	} {
		load, err := NewLoad(c.settings)
		if err != nil {
			t.Fatal(err)
		}
		if got := load.Digest == want; got != c.same {
			t.Errorf("%s: %s", c.why, load.Digest)
		}
	}
	if _, err := NewLoad(map[string]any{"speed": func() {}}); err == nil {
		t.Error("a value that is no JSON was taken")
	}
}
