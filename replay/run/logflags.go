package run

import "plimsoll/replay/accesslog"

// LogFlags are the flags for reading logs, of every command that reads some.
type LogFlags struct {
	Format         string `help:"goaccess preset (COMBINED, VCOMBINED, …) or log-format string. Default: detected." placeholder:"F" group:"Reading logs"`
	DateFormat     string `help:"strftime format of %d." placeholder:"D" group:"Reading logs"`
	TimeFormat     string `help:"strftime format of %t." placeholder:"T" group:"Reading logs"`
	DatetimeFormat string `help:"strftime format of %x." placeholder:"DT" group:"Reading logs"`
	TZ             string `name:"tz" help:"Time zone of times without an offset, such as Europe/Berlin. Default: UTC." placeholder:"ZONE" group:"Reading logs"`
	Config         string `help:"Read the formats from this goaccess.conf; flags take precedence." placeholder:"FILE" group:"Reading logs"`
	StrictHosts    bool   `help:"Reject lines whose client is not an IP address, as goaccess does by default." group:"Reading logs"`
	AllowRejects   bool   `help:"Continue when more than 10 % of the lines do not parse." group:"Reading logs"`

	AllowDuplicates bool `help:"Read logs of which one begins with all that is in another, as a log and its packed copy." group:"Reading logs"`
}

// Spec returns what the flags and the configuration file say together.
func (f LogFlags) Spec() (accesslog.Spec, error) {
	spec := accesslog.Spec{
		Log: f.Format, Date: f.DateFormat, Time: f.TimeFormat, DateTime: f.DatetimeFormat, TZ: f.TZ, StrictHosts: f.StrictHosts,
	}
	if f.Config == "" {
		return spec, nil
	}
	conf, err := accesslog.ReadConfigFile(f.Config)
	if err != nil {
		return spec, UsageError{err}
	}
	return spec.Or(conf), nil
}

// Args returns the flags as they are passed on to another process.
func (f LogFlags) Args() []string {
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
	if f.AllowDuplicates {
		args = append(args, "--allow-duplicates")
	}
	return args
}
