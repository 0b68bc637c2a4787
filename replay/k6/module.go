// Package k6 is Plimsoll inside Grafana k6: the module k6/x/plimsoll replays access logs, and --out plimsoll=DIR writes
// what a script's requests took as run directories. It is a separate Go module, so that k6 stays out of bin/replay.
package k6

import (
	"github.com/grafana/sobek"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/js/modules"
	"go.k6.io/k6/output"
)

func init() {
	modules.Register("k6/x/plimsoll", &rootModule{logs: map[string]*openLog{}})
	output.RegisterExtension("plimsoll", newOutput)
}

// rootModule is one for all virtual users of an instance, and knows the logs that they have opened.
type rootModule struct {
	handles
	logs map[string]*openLog
}

// instance is the module as one virtual user has it.
type instance struct {
	vu      modules.VU
	root    *rootModule
	metrics *replayMetrics
}

// NewModuleInstance makes the module for a virtual user.
func (r *rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	m, err := newReplayMetrics(vu.InitEnv().Registry)
	if err != nil {
		common.Throw(vu.Runtime(), err)
	}
	return &instance{vu: vu, root: r, metrics: m}
}

// Exports returns open and scenario.
func (i *instance) Exports() modules.Exports {
	return modules.Exports{Default: map[string]any{"open": i.open, "scenario": i.scenario}}
}

// open checks the options and returns a handle whose replay() replays it. It throws everything that is wrong at once.
func (i *instance) open(options sobek.Value) *sobek.Object {
	rt := i.vu.Runtime()
	if i.vu.InitEnv() == nil {
		common.Throw(rt, common.NewInitContextError("call plimsoll.open() in the init context, outside of all functions"))
	}
	given, err := readOptions(options)
	if err != nil {
		common.Throw(rt, err)
	}
	log, err := i.root.open(given, i.vu.InitEnv().GetAbsFilePath)
	if err != nil {
		common.Throw(rt, err)
	}
	handle := rt.NewObject()
	if err := handle.Set("replay", func() map[string]any { return i.replay(log) }); err != nil {
		common.Throw(rt, err)
	}
	return handle
}

// scenario returns the k6 scenario for a replay: one virtual user in each instance, who calls replay() once.
func (i *instance) scenario(given struct {
	Instances   int    `js:"instances"`
	MaxDuration string `js:"maxDuration"`
	Exec        string `js:"exec"`
}) map[string]any {
	scenario := map[string]any{
		"executor": "per-vu-iterations", "vus": max(1, given.Instances), "iterations": 1,
		"maxDuration": "24h", "gracefulStop": "60s",
	}
	if given.MaxDuration != "" {
		scenario["maxDuration"] = given.MaxDuration
	}
	if given.Exec != "" {
		scenario["exec"] = given.Exec
	}
	return scenario
}
