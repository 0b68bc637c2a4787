// Command k6 is Grafana k6 with k6/x/plimsoll in it.
package main

import (
	"go.k6.io/k6/cmd"

	_ "plimsoll/replay/k6"
)

func main() { cmd.Execute() }
