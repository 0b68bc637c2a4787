package k6

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"go.k6.io/k6/lib"

	"plimsoll/replay/record"
	"plimsoll/replay/run"
	"plimsoll/replay/traffic"
)

// divide gives this instance the share of the clients that its execution segment names. A run that is whole has none.
func divide(ctx context.Context, setup *run.Setup) error {
	state := lib.GetExecutionState(ctx)
	if state == nil || state.ExecutionTuple == nil || len(state.ExecutionTuple.Sequence.ExecutionSegmentSequence) < 2 {
		return nil
	}
	tuple := state.ExecutionTuple
	segments := tuple.Sequence.ExecutionSegmentSequence
	bounds := boundsOf(segments)
	share, err := traffic.NewShare(bounds, tuple.SegmentIndex)
	if err != nil {
		return fmt.Errorf("the execution segments cannot be used: %w: give --execution-segment-sequence as 0,1/4,1/2,3/4,1", err)
	}
	if err := everyInstanceWorks(ctx, state); err != nil {
		return err
	}
	var sequence []string
	for _, bound := range bounds {
		sequence = append(sequence, bound.RatString())
	}
	setup.Divide(share, record.Shard{
		Index: tuple.SegmentIndex, Of: len(segments), Segment: segments[tuple.SegmentIndex].String(), Sequence: sequence,
		StartAt: record.Instant{Time: setup.StartAt}, Clock: record.ThisClock(),
	})
	return nil
}

// boundsOf returns where the segments begin, and where the last one ends. k6 offers them as text only.
func boundsOf(segments lib.ExecutionSegmentSequence) []*big.Rat {
	var bounds []*big.Rat
	for i, segment := range segments {
		from, to, _ := strings.Cut(segment.String(), ":")
		if i == 0 {
			bounds = append(bounds, rational(from))
		}
		bounds = append(bounds, rational(to))
	}
	return bounds
}

func rational(text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return new(big.Rat) // k6 writes none such; NewShare refuses bounds that do not ascend
	}
	return r
}

// everyInstanceWorks refuses a scenario whose virtual users do not suffice for all instances: k6 would give some of
// them nothing to do, and no instance would replay their clients.
func everyInstanceWorks(ctx context.Context, state *lib.ExecutionState) error {
	scenario := lib.GetScenarioState(ctx)
	if scenario == nil {
		return nil
	}
	config, ok := state.Test.Options.Scenarios[scenario.Name]
	if !ok {
		return nil
	}
	sequence := state.ExecutionTuple.Sequence
	var idle []string
	for i, segment := range sequence.ExecutionSegmentSequence {
		if !config.HasWork(sequence.GetTuple(i)) {
			idle = append(idle, segment.String())
		}
	}
	if len(idle) > 0 {
		return fmt.Errorf("scenario %s has too few virtual users: instances %v have none, and no instance would replay their clients: "+
			"scenarios: { %s: plimsoll.scenario({ instances: %d }) }", scenario.Name, idle, scenario.Name, len(sequence.ExecutionSegmentSequence))
	}
	return nil
}
