package engine_test

import (
	"flag"
	"os"
	"testing"
)

// atOnce is how many parallel tests run at once: most of them wait for a time-out.
const atOnce = "16"

// asGenerator makes this process another one, where it was started for that.
var asGenerator = func() bool { return false }

func TestMain(m *testing.M) {
	if asGenerator() {
		return
	}
	flag.Parse()
	_ = flag.Set("test.parallel", atOnce)
	os.Exit(m.Run())
}
