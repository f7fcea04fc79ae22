// Package guesthouse makes a Go program a guest of Guesthouse: a component whose tools, resources and prompts the host
// serves over MCP.
//
// A guest names its parts in an init function, and leaves main empty:
//
//	func init() {
//		guesthouse.Serve(guesthouse.New(
//			guesthouse.Info{Name: "greeter", Version: "1.0.0"},
//			tool.New("greet", "Greets somebody.", greet),
//		))
//	}
//
//	func main() {}
//
// What clients are offered follows from what is imported: a guest that imports no package prompt offers no prompts.
package guesthouse

import (
	"encoding/json"
	"fmt"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
)

// Info is what a server says of itself. Name and Version are required.
type Info = registry.Info

// Part is something that a server is made of: what tool.New, resource.New, resource.Template, prompt.New and [Config] give.
type Part = registry.Part

// Server is a guest: what it says of itself, and its handlers.
type Server struct{ registry *registry.Registry }

// New makes a server of its parts, listed to clients in this order. It panics when two parts have the same name, as that is
// a mistake in the program.
func New(info Info, parts ...Part) *Server {
	r := &registry.Registry{Info: info}
	for _, part := range parts {
		if err := part.Attach(r); err != nil {
			panic("guesthouse: " + err.Error())
		}
	}
	return &Server{r}
}

// Serve makes this the server that the component exports. Call it once, from an init function: main does not run in a guest.
func Serve(s *Server) { registry.Serve(s.registry) }

// Registry is for the SDK's own packages.
func (s *Server) Registry() *registry.Registry { return s.registry }

// Config hands the operator's configuration of this guest to use, on every new instance and before any handler runs.
// What does not fit T, and what use refuses, keeps the guest from starting, with that message.
func Config[T any](use func(config T) error) Part {
	return initializer(func(text json.RawMessage) error {
		var config T
		if err := json.Unmarshal(text, &config); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		return use(config)
	})
}

type initializer func(config json.RawMessage) error

// Attach adds the initializer.
func (i initializer) Attach(r *registry.Registry) error {
	r.Inits = append(r.Inits, i)
	return nil
}
