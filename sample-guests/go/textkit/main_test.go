package main

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/guesthousetest"
	"github.com/guesthouse-mcp/guesthouse/guest-sdk/go/mcp"
)

func TestWordCount(t *testing.T) {
	client := guesthousetest.New(t, textkit())
	for text, want := range map[string]counts{
		"":                   {0, 0, 0},
		"one\n":              {1, 4, 1},
		"a\nb":               {2, 3, 2},
		" un été\n🦀 \u00a0x": {4, 12, 2},
	} {
		result, err := client.Call("word_count", wordCountInput{text})
		var got counts
		if err != nil || json.Unmarshal(result.Structured, &got) != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if text, _ := client.Text("word_count", wordCountInput{"one"}); text != "1 word" {
		t.Error(text)
	}
}

func TestSlugify(t *testing.T) {
	client := guesthousetest.New(t, textkit())
	for text, want := range map[string]string{
		"Ça va? Très bien!": "ça-va-très-bien",
		"--Rust 2024__x--":  "rust-2024-x",
		"ΟΔΟΣ":              "οδος",
		"हिन्दी":            "हिन-दी",
	} {
		if got, isError := client.Text("slugify", slugifyInput{text}); got != want || isError {
			t.Errorf("%q: %q, %v", text, got, isError)
		}
	}
	if got, isError := client.Text("slugify", slugifyInput{"?!"}); got != "The text has no letter or digit." || !isError {
		t.Errorf("%q, %v", got, isError)
	}
}

const diff = `diff --git a/src/old name.go b/src/new name.go
similarity index 90%
rename from src/old name.go
rename to src/new name.go
--- a/src/old name.go
+++ b/src/new name.go
@@ -1,3 +1,4 @@ func main()
 context
--- a deleted line that looks like a header
+++ an added one
+another
\ No newline at end of file
 context
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
--- /dev/null	2026-01-01
+++ b/born.txt	2026-01-01
@@ -0,0 +1,2 @@
+one
+two
`

func TestSummarizeDiff(t *testing.T) {
	client := guesthousetest.New(t, textkit())
	result, err := client.Call("summarize_diff", diffInput{diff})
	if err != nil {
		t.Fatal(err)
	}
	var got diffSummary
	if err := json.Unmarshal(result.Structured, &got); err != nil {
		t.Fatal(err)
	}
	want := diffSummary{Additions: 4, Deletions: 2, Files: []*changedFile{
		{"src/new name.go", "renamed", 2, 1}, {"gone.txt", "deleted", 0, 1}, {"born.txt", "added", 2, 0},
	}}
	if !reflect.DeepEqual(got, want) || got.String() != "3 files, 4 additions, 2 deletions" {
		t.Errorf("%s", result.Structured)
	}
	if text, isError := client.Text("summarize_diff", diffInput{"hello"}); !isError || !strings.HasPrefix(text, "This is no unified diff") {
		t.Errorf("%q, %v", text, isError)
	}
}

func TestCase(t *testing.T) {
	client := guesthousetest.New(t, textkit())
	for uri, want := range map[string]string{
		"textkit://case/title/the%20qUICK%20%C3%A9t%C3%A9": "The Quick Été",
		"textkit://case/upper/stra%C3%9Fe":                 "STRASSE",
		"textkit://case/lower/%C3%80":                      "à",
	} {
		if got, err := client.Read(uri); err != nil || len(got) != 1 || got[0].Text != want || got[0].URI != uri {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
	}
	for _, uri := range []string{"textkit://case/upper/a/b", "textkit://case/camel/a"} {
		meant := new(mcp.Error)
		if _, err := client.Read(uri); !errors.As(err, &meant) || meant.Message != uri {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestRewrite(t *testing.T) {
	client := guesthousetest.New(t, textkit())
	result, err := client.Prompt("rewrite", map[string]string{"text": "Hi."})
	if err != nil || len(result.Messages) != 1 {
		t.Fatal(result, err)
	}
	text := result.Messages[0].Content.(mcp.Text).Text
	if !strings.Contains(text, "in a plain tone") || !strings.HasSuffix(text, "\n\nHi.") {
		t.Error(text)
	}
	if got, err := client.CompletePrompt("rewrite", "tone", "P"); err != nil || !reflect.DeepEqual(got, []string{"plain", "playful"}) {
		t.Error(got, err)
	}
}
