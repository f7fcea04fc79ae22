// Textkit offers small, exact tools for plain text.
package main

import (
	"context"
	_ "embed"

	guesthouse "github.com/guesthouse-mcp/guesthouse/guest-sdk/go"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/complete"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/prompt"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/resource"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/tool"
)

//go:embed stopwords.txt
var stopwords string

func textkit() *guesthouse.Server {
	return guesthouse.New(
		guesthouse.Info{
			Name: "textkit", Version: "0.1.0", Title: "Textkit", Description: "Small, exact tools for plain text.",
			Instructions: "Count with word_count instead of estimating.",
		},
		tool.New("word_count", "Counts the words, characters and lines of a text.", wordCount,
			tool.Title("Count words"), tool.ReadOnly(), tool.Idempotent(), tool.OpenWorld(false)),
		tool.New("slugify", "Turns a text into a slug for a URL: lower case, words joined by hyphens.", slugify,
			tool.Title("Make a slug"), tool.ReadOnly(), tool.Idempotent(), tool.OpenWorld(false)),
		tool.New("summarize_diff", "Lists the files that a unified diff changes, with the lines that it adds and deletes.", summarizeDiff,
			tool.Title("Summarize a diff"), tool.ReadOnly(), tool.Idempotent(), tool.OpenWorld(false)),
		resource.New("textkit://stopwords", "stopwords", "English words too common to search for, one per line.",
			func(context.Context) (string, error) { return stopwords, nil },
			resource.Title("Stop words")),
		resource.Template("textkit://case/{style}/{text}", "case", "A text in upper, lower or title case.", changeCase,
			resource.Title("Change case"),
			complete.Values("style", "upper", "lower", "title")),
		prompt.New("rewrite", "Rewrites a text in a chosen tone.", rewrite,
			prompt.Title("Rewrite"),
			complete.Values("tone", "concise", "formal", "friendly", "plain", "playful")),
	)
}

func init() { guesthouse.Serve(textkit()) }

func main() {}

type rewriteArguments struct {
	Text string  `json:"text" description:"The text to rewrite."`
	Tone *string `json:"tone" description:"How it should sound; plain if not given."`
}

func rewrite(_ context.Context, in rewriteArguments) (string, error) {
	tone := "plain"
	if in.Tone != nil {
		tone = *in.Tone
	}
	return "Rewrite the text below in a " + tone +
		" tone. Keep its meaning and its language, and answer with the new text only.\n\n" + in.Text, nil
}
