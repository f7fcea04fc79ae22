// Package complete proposes values for the arguments of prompts and the variables of resource templates while the user
// types. Importing it makes a guest offer completion. What it gives are options of prompt.New and resource.Template.
package complete

import (
	"context"
	"strings"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
)

// Completion is an option of a prompt or a template.
type Completion struct {
	argument string
	complete registry.Completer
}

// Argument asks a function for the values that fit what has been typed; resolved are the arguments already settled.
func Argument(
	argument string, propose func(ctx context.Context, typed string, resolved map[string]string) ([]string, error),
) Completion {
	return Completion{argument, propose}
}

// Values proposes those of the values that begin with what has been typed, in any mix of upper and lower case.
func Values(argument string, values ...string) Completion {
	return Argument(argument, func(_ context.Context, typed string, _ map[string]string) ([]string, error) {
		fitting := []string{}
		for _, value := range values {
			if len(value) >= len(typed) && strings.EqualFold(value[:len(typed)], typed) {
				fitting = append(fitting, value)
			}
		}
		return fitting, nil
	})
}

// ApplyPrompt is for package prompt.
func (c Completion) ApplyPrompt(p *registry.Prompt) { p.Completers[c.argument] = c.complete }

// ApplyTemplate is for package resource.
func (c Completion) ApplyTemplate(t *registry.Template) { t.Completers[c.argument] = c.complete }
