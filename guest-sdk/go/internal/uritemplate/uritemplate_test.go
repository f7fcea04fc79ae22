package uritemplate

import (
	"maps"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	cases := []struct {
		template, uri string
		want          map[string]string
	}{
		{"a://{x}", "a://b", map[string]string{"x": "b"}},
		{"a://{x}", "a://b%20c%2Fd", map[string]string{"x": "b c/d"}},
		{"a://{x}", "a://b/c", nil},
		{"a://{x}", "a://", nil},
		{"a://{x}", "a://b\n", map[string]string{"x": "b\n"}},
		{"a://{x}", "a://b%zz", nil},
		{"a://{x}/{y}", "a://b/c", map[string]string{"x": "b", "y": "c"}},
		{"a://{x}/{y}", "a://b", nil},
		{"a://{+x}", "a://b/c?d", map[string]string{"x": "b/c?d"}},
		{"a://{+x}.txt", "a://b.txt/c.txt", map[string]string{"x": "b.txt/c"}},
		{"a://{x}.{y}", "a://b.c.d", map[string]string{"x": "b.c", "y": "d"}},
		{"a://b", "a://b", map[string]string{}},
		{"a://b", "a://bc", nil},
	}
	for _, c := range cases {
		template, err := Parse(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		got, ok := template.Match(c.uri)
		if ok != (c.want != nil) || ok && !maps.Equal(got, c.want) {
			t.Errorf("%s on %s: %v %v, want %v", c.template, c.uri, got, ok, c.want)
		}
	}
}

func TestWhatCannotBeMatchedIsRefused(t *testing.T) {
	for template, want := range map[string]string{
		"a://{?x}":   "{?x} is not supported",
		"a://{x*}":   "{x*} is not supported",
		"a://{}":     "{} is not supported",
		"a://{x":     "not closed",
		"a://{x}{y}": "between",
		"{x}/{x}":    "twice",
	} {
		if _, err := Parse(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", template, err, want)
		}
	}
}

func TestMatchingDoesNotTakeForever(t *testing.T) {
	template, err := Parse("a://{+a}x{+b}x{+c}y")
	if err != nil {
		t.Fatal(err)
	}
	// Cubic at most, in a URI whose length the host bounds.
	if _, ok := template.Match("a://" + strings.Repeat("x", 300)); ok {
		t.Error("a URI without a y fits")
	}
}
