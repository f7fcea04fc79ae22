// Package export_guesthouse_mcp_completion answers the contract's interface completion. The bindings choose its name.
package export_guesthouse_mcp_completion

import (
	wit "github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_completion"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/bindings/guesthouse_mcp_types"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/convert"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/registry"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/running"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/internal/wit/types"
)

// Complete proposes values for an argument. The host cuts the list, so that total says how many there were.
func Complete(
	of wit.Reference, argument, value string, resolved []types.Tuple2[string, string],
) types.Result[wit.Completions, guesthouse_mcp_types.Error] {
	settled := make(map[string]string, len(resolved))
	for _, pair := range resolved {
		settled[pair.F0] = pair.F1
	}
	values, err := registry.Served().Complete(running.Here(), reference(of), argument, value, settled)
	if err != nil {
		return types.Err[wit.Completions](convert.Error(err))
	}
	if values == nil {
		values = []string{}
	}
	return types.Ok[wit.Completions, guesthouse_mcp_types.Error](wit.Completions{
		Values: values, Total: types.Some(uint32(len(values))),
	})
}

func reference(of wit.Reference) registry.Reference {
	if of.Tag() == wit.ReferenceResourceTemplate {
		return registry.Reference{IsTemplate: true, Name: of.ResourceTemplate()}
	}
	return registry.Reference{Name: of.Prompt()}
}
