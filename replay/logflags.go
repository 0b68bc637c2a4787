package main

import (
	"fmt"

	"plimsoll/replay/accesslog"
)

// logFlags say how logs are read, for every command that reads some.
type logFlags struct {
	Format         string `help:"goaccess preset (COMBINED, VCOMBINED, …) or log-format string. Default: detected." placeholder:"F" group:"Reading logs"`
	DateFormat     string `help:"strftime format of %d." placeholder:"D" group:"Reading logs"`
	TimeFormat     string `help:"strftime format of %t." placeholder:"T" group:"Reading logs"`
	DatetimeFormat string `help:"strftime format of %x." placeholder:"DT" group:"Reading logs"`
	TZ             string `name:"tz" help:"Time zone of times without an offset, such as Europe/Berlin. Default: UTC." placeholder:"ZONE" group:"Reading logs"`
	Config         string `help:"Read the formats from this goaccess.conf; flags go before it." placeholder:"FILE" group:"Reading logs"`
	StrictHosts    bool   `help:"Reject lines whose client is no IP address, as goaccess does by default." group:"Reading logs"`
	AllowRejects   bool   `help:"Go on when more than 10 % of the lines do not parse." group:"Reading logs"`
}

// spec is what the flags and the configuration file say together.
func (f logFlags) spec() (accesslog.Spec, error) {
	spec := accesslog.Spec{
		Log: f.Format, Date: f.DateFormat, Time: f.TimeFormat, DateTime: f.DatetimeFormat, TZ: f.TZ, StrictHosts: f.StrictHosts,
	}
	if f.Config == "" {
		return spec, nil
	}
	conf, err := accesslog.ReadConfigFile(f.Config)
	if err != nil {
		return spec, usageError{err}
	}
	return spec.Or(conf), nil
}

// args are the flags as they are passed on to another process.
func (f logFlags) args() []string {
	var args []string
	for _, flag := range []struct{ name, value string }{
		{"--format", f.Format},
		{"--date-format", f.DateFormat},
		{"--time-format", f.TimeFormat},
		{"--datetime-format", f.DatetimeFormat},
		{"--tz", f.TZ},
		{"--config", f.Config},
	} {
		if flag.value != "" {
			args = append(args, flag.name+"="+flag.value)
		}
	}
	if f.StrictHosts {
		args = append(args, "--strict-hosts")
	}
	if f.AllowRejects {
		args = append(args, "--allow-rejects")
	}
	return args
}

// More than this part of the lines, and more than this many, may not be rejected without --allow-rejects. A single odd line says
// nothing of the format, however short the log is.
const (
	maxRejectedShare = 0.10
	maxRejectedLines = 1
)

// tolerable refuses a log of which too much was rejected; it shows the first rejects.
func (f logFlags) tolerable(totals accesslog.Totals, format string, first []accesslog.Rejected) error {
	if totals.Valid == 0 && totals.Failed == 0 {
		return usageError{fmt.Errorf("the log has no requests: it holds only %d comments and empty lines", totals.Ignored)}
	}
	if f.AllowRejects && totals.Valid > 0 {
		return nil
	}
	if totals.Valid > 0 && (totals.RejectedShare() <= maxRejectedShare || totals.Failed <= maxRejectedLines) {
		return nil
	}
	text := fmt.Sprintf("%d of %d lines do not fit the format %q: give the right one with --format (FORMAT=), or --allow-rejects",
		totals.Failed, totals.Failed+totals.Valid, format)
	for _, r := range first[:min(3, len(first))] {
		text += fmt.Sprintf("\n  line %d: %s", r.Line, r.Reject.Error())
	}
	return usageError{fmt.Errorf("%s", text)}
}
