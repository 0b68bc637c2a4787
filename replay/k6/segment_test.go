package k6

import (
	"testing"

	"go.k6.io/k6/lib"

	"plimsoll/replay/traffic"
)

func TestSegmentsAreShares(t *testing.T) {
	for _, text := range []string{"0,1", "0,1/4,1/2,3/4,1", "0,1/3,2/3,1", "0,0.1,0.25,1"} {
		segments, err := lib.NewExecutionSegmentSequenceFromString(text)
		if err != nil {
			t.Fatal(err)
		}
		bounds := boundsOf(segments)
		if len(bounds) != len(segments)+1 {
			t.Fatalf("%s: %d bounds of %d segments", text, len(bounds), len(segments))
		}
		for i := range segments {
			share, err := traffic.NewShare(bounds, i)
			if err != nil || share.Instances() != len(segments) || share.Index() != i {
				t.Errorf("%s, %d: %v %v", text, i, share, err)
			}
		}
	}
}
