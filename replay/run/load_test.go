package run

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEachFlagShapesLoadOrDoesNot(t *testing.T) {
	classed := map[string]int{}
	for _, one := range shapings {
		for _, flag := range one.flags {
			classed[flag]++
		}
	}
	for _, flags := range shapeless {
		for _, flag := range flags {
			classed[flag]++
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Command]()) {
		if field.Anonymous || !field.IsExported() {
			continue
		}
		if classed[field.Name] != 1 {
			t.Errorf("%s is %d times in shapings and shapeless of load.go, want once", field.Name, classed[field.Name])
		}
		delete(classed, field.Name)
	}
	if len(classed) > 0 {
		t.Errorf("load.go has flags that do not exist: %v", classed)
	}
}

func TestTimesOfTheLoadHaveTheirUnit(t *testing.T) {
	for _, one := range shapings {
		field, _ := reflect.TypeFor[Command]().FieldByName(one.flags[0])
		if field.Type == reflect.TypeFor[time.Duration]() && !strings.HasSuffix(one.name, "_s") {
			t.Errorf("%s is a time: name it with its unit", one.name)
		}
	}
}
