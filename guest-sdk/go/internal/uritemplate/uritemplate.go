// Package uritemplate matches URIs against the templates of RFC 6570 that can be matched without doubt: literals, {name}
// for one path segment, and {+name} for anything.
package uritemplate

import (
	"fmt"
	"net/url"
	"strings"
)

// Template is a parsed template.
type Template struct{ parts []part }

// part is a literal when it has no name.
type part struct {
	literal, name string
	// reserved lets the value hold slashes and other characters that have a meaning in a URI.
	reserved bool
}

// Parse reads a template, and says what in it cannot be matched.
func Parse(text string) (*Template, error) {
	t := &Template{}
	seen := map[string]bool{}
	for rest := text; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if literal != "" {
			t.parts = append(t.parts, part{literal: literal})
		}
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("template %q: a brace is not closed", text)
		}
		bare := strings.TrimPrefix(name, "+")
		if bare == "" || strings.ContainsAny(bare, "+#./;?&=,!@|:*{") {
			return nil, fmt.Errorf("template %q: {%s} is not supported; use {name} or {+name}", text, name)
		}
		if seen[bare] {
			return nil, fmt.Errorf("template %q: {%s} occurs twice", text, bare)
		}
		if literal == "" && len(t.parts) > 0 {
			return nil, fmt.Errorf("template %q: put something between {%s} and the variable before it", text, name)
		}
		seen[bare] = true
		t.parts = append(t.parts, part{name: bare, reserved: bare != name})
		rest = tail
	}
	return t, nil
}

// Names are the variables, in order.
func (t *Template) Names() []string {
	names := []string{}
	for _, p := range t.parts {
		if p.name != "" {
			names = append(names, p.name)
		}
	}
	return names
}

// Match gives the variables' values, percent-decoded; false when the URI does not fit. No value is empty.
func (t *Template) Match(uri string) (map[string]string, bool) {
	values := map[string]string{}
	return values, match(t.parts, uri, values)
}

func match(parts []part, uri string, values map[string]string) bool {
	if len(parts) == 0 {
		return uri == ""
	}
	first, rest := parts[0], parts[1:]
	if first.name == "" {
		after, ok := strings.CutPrefix(uri, first.literal)
		return ok && match(rest, after, values)
	}
	// A variable is followed by a literal or by nothing. The longest value is tried first, so that {+path}.txt
	// takes all but the last ".txt".
	for end := len(uri); end > 0; end-- {
		if len(rest) == 0 && end != len(uri) {
			return false
		}
		if len(rest) > 0 && !strings.HasPrefix(uri[end:], rest[0].literal) {
			continue
		}
		raw := uri[:end]
		if !first.reserved && strings.ContainsAny(raw, "/?#") {
			continue
		}
		value, err := url.PathUnescape(raw)
		if err == nil && match(rest, uri[end:], values) {
			values[first.name] = value
			return true
		}
	}
	return false
}
