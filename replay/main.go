// Command replay reads access logs as goaccess does and replays them against a server.
package main

import "os"

func main() {
	os.Exit(runMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
