package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/replay/record"
	"plimsoll/replay/traffic"
)

// shaping is a setting that shapes load, as run.json has it: with its unit in its name, made of some flags.
type shaping struct {
	name  string
	flags []string // fields of Command
	value func(g given) any
}

// given is all that settings are made of.
type given struct {
	*Command
	setup *Setup
	logs  *traffic.Logs
}

// shapings are all settings that shape load. Each flag is in one of them, or in shapeless.
var shapings = []shaping{
	{"logs", []string{"Logs"}, func(g given) any { return g.logs.Contents() }},
	{"log_format", []string{"Format", "Config"}, func(g given) any { return g.logs.Format.Spec().Log }},
	{"log_date_format", []string{"DateFormat"}, func(g given) any { return g.logs.Format.Spec().Date }},
	{"log_time_format", []string{"TimeFormat"}, func(g given) any { return g.logs.Format.Spec().Time }},
	{"log_datetime_format", []string{"DatetimeFormat"}, func(g given) any { return g.logs.Format.Spec().DateTime }},
	{"log_time_zone", []string{"TZ"}, func(g given) any { return g.logs.Format.Spec().TZ }},
	{"strict_hosts", []string{"StrictHosts"}, func(g given) any { return g.logs.Format.Spec().StrictHosts }},
	{"log_times_are", []string{"LogTime"}, func(g given) any { return g.logs.TimesAre() }},
	{"clients", []string{"Clients"}, func(g given) any { return spread(g.setup.census) }},
	{"methods", []string{"Methods"}, func(g given) any { return slices.Sorted(maps.Keys(g.setup.plan.Methods)) }},
	{"replace_fields", []string{"ReplaceField"}, func(g given) any { return g.setup.plan.Forms.Names() }},
	{"include", []string{"Include"}, func(g given) any { return texts(g.Include) }},
	{"exclude", []string{"Exclude"}, func(g given) any { return texts(g.Exclude) }},
	{"from", []string{"From"}, func(g given) any { return record.Instant{Time: g.setup.plan.From} }},
	{"to", []string{"To"}, func(g given) any { return record.Instant{Time: g.setup.plan.To} }},
	{"limit", []string{"Limit"}, func(g given) any { return orNull(g.Limit) }},
	{"loops", []string{"Loops"}, func(g given) any { return orNull(g.Loops) }},
	{"duration_s", []string{"Duration"}, func(g given) any { return orNull(g.Duration.Seconds()) }},
	{"warmup_s", []string{"Warmup"}, func(g given) any { return g.Warmup.Seconds() }},
	{"speed", []string{"Speed"}, func(g given) any { return orNull(g.setup.plan.Speed) }},
	{"rate_per_s", []string{"Rate"}, func(g given) any { return orNull(g.Rate) }},
	{"users", []string{"Users"}, func(g given) any { return orNull(g.Users) }},
	{"ramp_up_s", []string{"RampUp"}, func(g given) any { return onlyIf(g.Users > 0, g.rampUp().Seconds()) }},
	{"connections", []string{"Connections"}, func(g given) any { return onlyIf(g.Speed == "max", g.Connections) }},
	{"max_gap_s", []string{"MaxGap"}, func(g given) any { return g.MaxGap.Seconds() }},
	{"burst", []string{"Burst"}, func(g given) any { return g.Burst }},
	{"seed", []string{"Seed"}, func(g given) any { return g.Seed }},
	{"headers", []string{"Header", "HeaderFile"}, func(g given) any { return g.setup.headers.Digests(record.Digest) }},
	{"client_headers", []string{"ClientHeader"}, func(g given) any { return strings.Fields(strings.ToLower(strings.Join(g.ClientHeader, " "))) }},
	{"host", []string{"Host"}, func(g given) any { return g.Host }},
	{"accounts", []string{"Accounts"}, func(g given) any { return g.setup.membership.facts() }},
	{"members_match", []string{"MembersMatch"}, func(g given) any { return texts(g.MembersMatch) }},
	{"members_share", []string{"MembersShare"}, func(g given) any { return orNull(g.MembersShare) }},
	{"unconditional", []string{"Unconditional"}, func(g given) any { return g.Unconditional }},
	{"timeout_s", []string{"Timeout"}, func(g given) any { return g.Timeout.Seconds() }},
	{"idle_timeout_s", []string{"IdleTimeout"}, func(g given) any { return g.IdleTimeout.Seconds() }},
	{"tls_resume", []string{"TLSResume"}, func(g given) any { return g.TLSResume }},
	{"max_connections", []string{"MaxConnections"}, func(g given) any { return g.maxConnections() }},
	{"connections_per_client", []string{"ConnectionsPerClient"}, func(g given) any { return onlyIf(g.Speed != "max", g.ConnectionsPerClient) }},
}

// shapeless are the flags that shape no load, by why they do not.
var shapeless = map[string][]string{
	"where the load goes, and what proves that it is there": {"Target", "ConnectTo", "Insecure", "SourceAddress", "Root", "LoginPage", "AllowLogins", "AllowWrites"},
	"names":                            {"Backend", "Repeat", "Route"},
	"what is written":                  {"Out", "GrinderLog", "HDRLog"},
	"what is shown":                    {"JSON", "Quiet", "Metrics", "MetricsRemote"},
	"when to give up, before any load": {"AllowRejects", "AllowDuplicates"},
	"when to give up, without a target: then the run has failed":       {"KeepGoing"},
	"what is judged, and when to give up: then the run is interrupted": {"FailOver", "AbortOnFail", "AbortAfter"},
}

// load returns all that shapes the load of a run. It is the same for all instances that share one.
func (c *Command) load(s *Setup, l *traffic.Logs) (*record.Load, error) {
	settings := map[string]any{"program": "replay", "program_version": Version}
	for _, one := range shapings {
		settings[one.name] = one.value(given{c, s, l})
	}
	return record.NewLoad(settings)
}

// spread returns whether clients are the log's own, or how many stand for proxies.
func spread(c traffic.Census) string {
	if c.Over == 0 {
		return "log"
	}
	return fmt.Sprintf("proxies' spread over %d", c.Over)
}

// orNull returns null for a flag that was not given.
func orNull[T comparable](value T) any {
	var none T
	return onlyIf(value != none, value)
}

// onlyIf returns null for a flag that says nothing beside the others.
func onlyIf(says bool, value any) any {
	if !says {
		return nil
	}
	return value
}

// texts returns a list that is [] in JSON where it is empty.
func texts(list []string) []string { return append([]string{}, list...) }
