package run

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEachFlagShapesLoadOrDoesNot(t *testing.T) {
	classed := map[string]int{}
	for _, one := range loadSettings {
		for _, flag := range one.flags {
			classed[flag]++
		}
	}
	for _, flags := range notLoad {
		for _, flag := range flags {
			classed[flag]++
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		if field.Anonymous || !field.IsExported() {
			continue
		}
		if classed[field.Name] != 1 {
			t.Errorf("%s is %d times in loadSettings and notLoad of settings.go, want once", field.Name, classed[field.Name])
		}
		delete(classed, field.Name)
	}
	if len(classed) > 0 {
		t.Errorf("settings.go has flags that do not exist: %v", classed)
	}
}

func TestTimesOfTheLoadHaveTheirUnit(t *testing.T) {
	for _, one := range loadSettings {
		field, _ := reflect.TypeFor[Settings]().FieldByName(one.flags[0])
		if field.Type == reflect.TypeFor[time.Duration]() && !strings.HasSuffix(one.name, "_s") {
			t.Errorf("%s is a time: name it with its unit", one.name)
		}
	}
}
