// Package resource makes resources of functions. Importing it makes a guest offer resources.
package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/uritemplate"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/words"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// ErrNotFound says that there is no resource under the URI that was asked for.
var ErrNotFound = errors.New("no such resource")

// New makes a resource of a function that reads it.
//
// What Out is decides what the client gets: a string is text, a []byte is a blob, a [mcp.ResourceContents] or a slice of
// them is itself, and anything else is written as JSON. An error goes to the log unless it has a meaning, see package mcp.
func New[Out any](uri, name, description string, read func(ctx context.Context) (Out, error), options ...Option) *registry.Resource {
	r := &registry.Resource{URI: uri, Name: name, Common: registry.Common{Description: description}}
	r.MIMEType = defaultType(reflect.TypeFor[Out]())
	for _, option := range options {
		option.applyResource(r)
	}
	r.Read = func(ctx context.Context, uri string) ([]mcp.ResourceContents, error) {
		out, err := read(ctx)
		if err != nil {
			return nil, meaning(uri, err)
		}
		return contents(uri, r.MIMEType, out)
	}
	return r
}

// Template makes a family of resources of a function that reads one of them. Variables is a struct with a field for each of
// the template's variables, found by its json tag and percent-decoded: {name} is one path segment, {+name} may be more.
// A URI that does not fit the template, or the types of the fields, is not found. Out is as for [New].
//
// Template panics when the variables and the fields differ, as that is a mistake in the program.
func Template[Variables, Out any](
	uriTemplate, name, description string,
	read func(ctx context.Context, variables Variables) (Out, error),
	options ...TemplateOption,
) *registry.Template {
	template, err := uritemplate.Parse(uriTemplate)
	if err != nil {
		panic("resource: " + err.Error())
	}
	fields, err := words.Fields(reflect.TypeFor[Variables]())
	if err != nil {
		panic(fmt.Sprintf("resource template %q: %v", uriTemplate, err))
	}
	names := []string{}
	for _, field := range fields {
		names = append(names, field.Name)
		if !slices.Contains(template.Names(), field.Name) {
			panic(fmt.Sprintf("resource template %q has no variable %q for field %s", uriTemplate, field.Name, field.GoName))
		}
	}
	for _, variable := range template.Names() {
		if !slices.Contains(names, variable) {
			panic(fmt.Sprintf("resource template %q: no field of %s has the json tag %q", uriTemplate, reflect.TypeFor[Variables](), variable))
		}
	}
	t := &registry.Template{
		URITemplate: uriTemplate, Name: name, Common: registry.Common{Description: description},
		MIMEType: defaultType(reflect.TypeFor[Out]()), Match: template.Match, Completers: map[string]registry.Completer{},
	}
	for _, option := range options {
		option.ApplyTemplate(t)
	}
	for argument := range t.Completers {
		if !slices.Contains(names, argument) {
			panic(fmt.Sprintf("resource template %q has no variable %q to complete", uriTemplate, argument))
		}
	}
	t.Read = func(ctx context.Context, uri string, values map[string]string) ([]mcp.ResourceContents, error) {
		var variables Variables
		if err := words.Fill(reflect.ValueOf(&variables).Elem(), fields, values); err != nil {
			return nil, mcp.NotFound(uri)
		}
		out, err := read(ctx, variables)
		if err != nil {
			return nil, meaning(uri, err)
		}
		return contents(uri, t.MIMEType, out)
	}
	return t
}

func meaning(uri string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return mcp.NotFound(uri)
	}
	return err
}

func defaultType(out reflect.Type) string {
	switch {
	case out.Kind() == reflect.String:
		return "text/plain"
	case out.Kind() == reflect.Slice && out.Elem().Kind() == reflect.Uint8:
		return "application/octet-stream"
	case out == reflect.TypeFor[mcp.ResourceContents](), out == reflect.TypeFor[[]mcp.ResourceContents]():
		return ""
	default:
		return "application/json"
	}
}

func contents(uri, mimeType string, out any) ([]mcp.ResourceContents, error) {
	switch out := out.(type) {
	case mcp.ResourceContents:
		return []mcp.ResourceContents{out}, nil
	case []mcp.ResourceContents:
		return out, nil
	}
	value := reflect.ValueOf(out)
	switch {
	case value.Kind() == reflect.String:
		return []mcp.ResourceContents{{URI: uri, MIMEType: mimeType, Text: value.String()}}, nil
	case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8:
		blob := value.Bytes()
		if blob == nil {
			blob = []byte{}
		}
		return []mcp.ResourceContents{{URI: uri, MIMEType: mimeType, Blob: blob}}, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, mcp.Internal("contents of %s: %v", uri, err)
	}
	return []mcp.ResourceContents{{URI: uri, MIMEType: mimeType, Text: string(text)}}, nil
}
