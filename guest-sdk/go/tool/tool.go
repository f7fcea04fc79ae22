// Package tool makes tools of functions. Importing it makes a guest offer tools.
package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/schema"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

// Tool is a part of a server.
type Tool = registry.Tool

// Result is for handlers that want to say everything themselves.
type Result = registry.ToolResult

// New makes a tool of a function. In is a struct, whose fields are the arguments: their names come from the json tags, and
// the input schema from their types and tags (see the package's README). The host checks arguments against that schema.
//
// What Out is decides what the client gets: a string is text; a [mcp.Content] or a slice of them is itself; a *[Result] says
// everything; any other type is structured output, with a schema of its own, and a text beside it for clients that read nothing
// else: its String method's, or else its JSON. A handler's error becomes a result that the model can read and react to, see package mcp for others.
//
// Listing the tools panics when In or Out has no JSON Schema, as that is a mistake in the program; so does guesthousetest.New.
func New[In, Out any](name, description string, run func(ctx context.Context, in In) (Out, error), options ...Option) *Tool {
	t := &Tool{Name: name, Common: registry.Common{Description: description}}
	t.InputSchema = derived(name, argumentsType(name, reflect.TypeFor[In]()), true)
	if structured(reflect.TypeFor[Out]()) {
		t.OutputSchema = derived(name, reflect.TypeFor[Out](), false)
	}
	t.Call = func(ctx context.Context, arguments json.RawMessage) (*Result, error) {
		var in In
		if err := json.Unmarshal(arguments, &in); err != nil {
			return nil, mcp.InvalidParams("arguments of %s: %v", name, err)
		}
		out, err := run(ctx, in)
		if err != nil {
			return nil, err
		}
		return resultOf(name, out)
	}
	for _, option := range options {
		option(t)
	}
	return t
}

// Error is a result that tells the model what went wrong; it is what an ordinary error of a handler becomes.
func Error(format string, args ...any) *Result {
	return &Result{IsError: true, Content: []mcp.Content{mcp.Text{Text: fmt.Sprintf(format, args...)}}}
}

func argumentsType(tool string, in reflect.Type) reflect.Type {
	if in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct && in.Kind() != reflect.Map {
		panic(fmt.Sprintf("tool %q: the arguments are a %s, but must be a struct", tool, in))
	}
	return in
}

// derived describes a type when it is asked to: a new instance runs for every call, and few calls list the tools.
func derived(tool string, t reflect.Type, closed bool) registry.Schema {
	return func() json.RawMessage {
		text, err := schema.For(t, closed)
		if err != nil {
			panic(fmt.Sprintf("tool %q: %v", tool, err))
		}
		return text
	}
}

var contentType = reflect.TypeFor[mcp.Content]()

// structured tells the types that become structured output from those that have a meaning of their own.
func structured(out reflect.Type) bool {
	switch {
	case out.Kind() == reflect.String, out == reflect.TypeFor[*Result](), out.Implements(contentType):
		return false
	case out.Kind() == reflect.Slice && out.Elem().Implements(contentType):
		return false
	case out == reflect.TypeFor[struct{}](), out == reflect.TypeFor[any]():
		return false
	}
	return true
}

func resultOf(tool string, out any) (*Result, error) {
	switch out := out.(type) {
	case *Result:
		if out == nil {
			return &Result{}, nil
		}
		return out, nil
	case mcp.Content:
		return &Result{Content: []mcp.Content{out}}, nil
	case []mcp.Content:
		return &Result{Content: out}, nil
	case struct{}, nil:
		return &Result{}, nil
	}
	value := reflect.ValueOf(out)
	if value.Kind() == reflect.String {
		return &Result{Content: []mcp.Content{mcp.Text{Text: value.String()}}}, nil
	}
	if value.Kind() == reflect.Slice && value.Type().Elem().Implements(contentType) {
		result := &Result{}
		for i := range value.Len() {
			result.Content = append(result.Content, value.Index(i).Interface().(mcp.Content))
		}
		return result, nil
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, mcp.Internal("output of %s: %v", tool, err)
	}
	summary := string(text)
	if speaker, ok := out.(fmt.Stringer); ok {
		summary = speaker.String()
	}
	return &Result{Structured: text, Content: []mcp.Content{mcp.Text{Text: summary}}}, nil
}
