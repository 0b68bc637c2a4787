package k6

import "go.k6.io/k6/output"

func newOutput(params output.Params) (output.Output, error) { return nil, nil }
