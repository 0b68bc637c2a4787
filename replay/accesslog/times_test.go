package accesslog

import (
	"testing"
	"time"
)

func TestClocks(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ why, format, text, want string }{
		{"Apache's date", "%d/%b/%Y", "10/Oct/2025", "2025-10-10T00:00:00Z"},
		{"months in full and in any case", "%d %B %Y", "3 february 2025", "2025-02-03T00:00:00Z"},
		{"a leap day", "%F", "2024-02-29", "2024-02-29T00:00:00Z"},
		{"a day that the month does not have runs over, as in C", "%F", "2025-02-30", "2025-03-02T00:00:00Z"},
		{"a leap second runs over too", "%F %T", "2016-12-31 23:59:60", "2017-01-01T00:00:00Z"},
		{"two digits of a year", "%m/%d/%y", "10/11/69", "1969-10-11T00:00:00Z"},
		{"two digits of a year in this century", "%D", "10/11/68", "2068-10-11T00:00:00Z"},
		{"twelve hours", "%F %r", "2025-10-10 12:30:00 AM", "2025-10-10T00:30:00Z"},
		{"twelve hours after noon", "%F %I:%M %p", "2025-10-10 12:30 pm", "2025-10-10T12:30:00Z"},
		{"a day of the year", "%Y-%j", "2024-060", "2024-02-29T00:00:00Z"},
		{"an offset", "%FT%T%z", "2025-10-10T13:00:00+05:30", "2025-10-10T07:30:00Z"},
		{"a zone's name is passed over", "%F %T %Z", "2025-10-10 13:00:00 CEST", "2025-10-10T13:00:00Z"},
		{"seconds since the epoch", "%s", "1760100936", "2025-10-10T12:55:36Z"},
		{"microseconds since the epoch", "%f", "1760100936123456", "2025-10-10T12:55:36.123456Z"},
		{"milliseconds since the epoch", "%*", "1760100936123", "2025-10-10T12:55:36.123Z"},
		{"a fraction within a format", "%F %T.%f", "2025-10-10 13:00:00.5", "2025-10-10T13:00:00.5Z"},
		{"no year: the last one with such a day that is past", "%b %d", "Dec 24", "2025-12-24T00:00:00Z"},
		{"no year: this one, with clocks a day apart", "%b %d", "Mar  2", "2026-03-02T00:00:00Z"},
		{"a number ends before a digit that would make it too much", "%F %H%M", "2025-10-10 305", "2025-10-10T03:05:00Z"},
		{"too many days", "%d/%b/%Y", "32/Oct/2025", ""},
		{"too little", "%d/%b/%Y", "10/Oct", ""},
		{"too much", "%d/%b/%Y", "10/Oct/2025x", ""},
		{"not a number", "%f", "12x", ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			clock, err := newTimeFormat(c.format, now)
			if err != nil {
				t.Fatal(err)
			}
			var at timestamp
			got := ""
			if clock.read([]byte(c.text), &at) {
				ns, _ := at.ns(nil)
				got = time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
			}
			if got != c.want {
				t.Errorf("%q as %q is %s, want %s", c.text, c.format, got, c.want)
			}
		})
	}
}

func TestAnyTime(t *testing.T) {
	for text, want := range map[string]string{
		"1760100936":                    "2025-10-10T12:55:36Z",
		"1760100936.5":                  "2025-10-10T12:55:36.5Z",
		"2025-10-10T13:55:36+02:00":     "2025-10-10T11:55:36Z",
		"2025-10-10T13:55:36.250Z":      "2025-10-10T13:55:36.25Z",
		"2025-10-10 13:55:36,125":       "2025-10-10T13:55:36.125Z",
		"10/Oct/2025:13:55:36 -0700":    "2025-10-10T20:55:36Z",
		"10/Oct/2025:13:55:36.75 +0000": "2025-10-10T13:55:36.75Z",
		"1760100936125":                 "2025-10-10T12:55:36.125Z",
		"1760100936125250":              "2025-10-10T12:55:36.12525Z",
		"1760100936433000200":           "2025-10-10T12:55:36.4330002Z",
		"2025-10-10T13:55:36UTC":        "2025-10-10T13:55:36Z",
		"2025-10-10T13:55:36+0200":      "2025-10-10T11:55:36Z",
		"99999999999999999999":          "",
		"10/Oct/2025":                   "",
		"yesterday":                     "",
		"1760100936.":                   "",
	} {
		var at timestamp
		got := ""
		if (timeFormat{kind: readsAny}).read([]byte(text), &at) {
			ns, _ := at.ns(nil)
			got = time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// TestDays holds the calendar against Go's.
func TestDays(t *testing.T) {
	for day := int64(-800_000); day < 200_000; day += 37 {
		at := time.Unix(day*86400, 0).UTC()
		if got := daysFromCivil(at.Year(), int(at.Month()), at.Day()); got != day {
			t.Fatalf("%v is day %d, not %d", at, day, got)
		}
	}
}

func TestChangeOfClocks(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones on this machine:", err)
	}
	for local, want := range map[string]string{
		"2025-03-30 01:59:59": "2025-03-30T00:59:59Z",
		"2025-03-30 03:00:00": "2025-03-30T01:00:00Z",
		"2025-10-26 03:00:00": "2025-10-26T02:00:00Z",
	} {
		var at timestamp
		clock, _ := newTimeFormat("%F %T", time.Now())
		if !clock.read([]byte(local), &at) {
			t.Fatal(local)
		}
		ns, _ := at.ns(zone)
		if got := time.Unix(0, ns).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s in Berlin is %s, want %s", local, got, want)
		}
	}
}
