package accesslog

import (
	"slices"

	"plimsoll/replay/accesslog/formats"
)

// sample is the sample of a format that has a name.
type sample struct {
	preset        string
	lines         []string
	valid, failed int
	why           string
	newer         bool
}

// sampleOf returns the sample of a format.
func sampleOf(preset string) sample {
	return samples[slices.IndexFunc(samples, func(s sample) bool { return s.preset == preset })]
}

// first are the formats that the fuzz tests had first: their corpora name formats by this order.
var first = []string{
	"COMBINED", "VCOMBINED", "COMMON", "VCOMMON", "W3C", "CLOUDFRONT", "CLOUDSTORAGE", "AWSELB", "AWSALB", "AWSS3", "SQUID", "TRAEFIKCLF", "CADDY", "RECORDING",
}

// samples are those of all formats that have a name.
var samples = func() (all []sample) {
	names := slices.Clone(first)
	for _, f := range formats.Named {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	for _, name := range names {
		f, _ := formats.Find(name)
		all = append(all, sample{name, f.Sample.Lines, f.Sample.Valid, f.Sample.Failed, f.Sample.Why, f.Sample.Newer})
	}
	return all
}()
