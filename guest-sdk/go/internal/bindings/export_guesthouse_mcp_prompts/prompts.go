// Package export_guesthouse_mcp_prompts answers the contract's interface prompts. The bindings choose its name.
package export_guesthouse_mcp_prompts

import (
	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_prompts"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/convert"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/running"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
)

// ListPrompts lists all prompts on one page.
func ListPrompts(types.Option[string]) types.Result[wit.PromptPage, guesthouse_mcp_types.Error] {
	prompts := []wit.Prompt{}
	for _, p := range registry.Served().Prompts {
		arguments := []wit.PromptArgument{}
		for _, a := range p.Arguments {
			arguments = append(arguments, wit.PromptArgument{
				Name: a.Name, Title: convert.Text(a.Title), Description: convert.Text(a.Description), Required: a.Required,
			})
		}
		prompts = append(prompts, wit.Prompt{
			Name: p.Name, Title: convert.Text(p.Title), Description: convert.Text(p.Description),
			Arguments: arguments, Icons: convert.Icons(p.Icons), Meta: convert.JSON(p.Meta),
		})
	}
	return types.Ok[wit.PromptPage, guesthouse_mcp_types.Error](wit.PromptPage{Prompts: prompts})
}

// GetPrompt renders a prompt.
func GetPrompt(name string, arguments []types.Tuple2[string, string]) types.Result[wit.PromptOutcome, guesthouse_mcp_types.Error] {
	values := make(map[string]string, len(arguments))
	for _, argument := range arguments {
		values[argument.F0] = argument.F1
	}
	rendered, err := registry.Served().GetPrompt(running.Here(), name, values)
	if err != nil {
		return types.Err[wit.PromptOutcome](convert.Error(err))
	}
	messages := []wit.PromptMessage{}
	for _, m := range rendered.Messages {
		messages = append(messages, wit.PromptMessage{Role: convert.Role(m.Role), Content: convert.Content(m.Content)})
	}
	return types.Ok[wit.PromptOutcome, guesthouse_mcp_types.Error](wit.MakePromptOutcomeComplete(wit.PromptResult{
		Description: convert.Text(rendered.Description), Messages: messages,
	}))
}
