import { NotFound, defineServer, result } from "@guesthouse/sdk";
import { summarizeDiff, summaryOf } from "./diff.js";
import stopwords from "./stopwords.js";
import { countWords, quantity, slugify, titleCase } from "./text.js";

const annotations = { readOnly: true, idempotent: true, openWorld: false };

const input = (name, description) => ({
  type: "object",
  properties: { [name]: { type: "string", description } },
  required: [name],
  additionalProperties: false,
});
const count = (description) => ({ type: "integer", description, minimum: 0 });
const output = (properties) => ({ type: "object", properties, required: Object.keys(properties) });

export default defineServer({
  name: "textkit",
  version: "0.1.0",
  title: "Textkit",
  description: "Small, exact tools for plain text.",
  instructions: "Count with word_count instead of estimating.",

  tools: {
    word_count: {
      title: "Count words",
      description: "Counts the words, characters and lines of a text.",
      annotations,
      input: input("text", "The text to count."),
      output: output({
        words: count("Words, separated by white space."),
        characters: count("Unicode code points."),
        lines: count("Lines; the last needs no line feed."),
      }),
      run({ text }) {
        const structured = countWords(text);
        return result({ text: quantity(structured.words, "word"), structured });
      },
    },
    slugify: {
      title: "Make a slug",
      description: "Turns a text into a slug for a URL: lower case, words joined by hyphens.",
      annotations,
      input: input("text", "The text to turn into a slug."),
      run: ({ text }) => slugify(text),
    },
    summarize_diff: {
      title: "Summarize a diff",
      description: "Lists the files that a unified diff changes, with the lines that it adds and deletes.",
      annotations,
      input: input("diff", "A unified diff, as `git diff` prints it."),
      output: output({
        files: {
          type: "array",
          description: "Files in the order of the diff.",
          items: output({
            path: { type: "string", description: "Path after the change; before it, where the file is deleted." },
            change: { type: "string", description: "What happened to the file.", enum: ["added", "deleted", "renamed", "modified"] },
            additions: count("Lines added."),
            deletions: count("Lines deleted."),
          }),
        },
        additions: count("Lines added in all files."),
        deletions: count("Lines deleted in all files."),
      }),
      run({ diff }) {
        const structured = summarizeDiff(diff);
        return result({ text: summaryOf(structured), structured });
      },
    },
  },

  resources: {
    "textkit://stopwords": {
      name: "stopwords",
      title: "Stop words",
      description: "English words too common to search for, one per line.",
      mimeType: "text/plain",
      read: () => stopwords,
    },
  },

  templates: {
    "textkit://case/{style}/{text}": {
      name: "case",
      title: "Change case",
      description: "A text in upper, lower or title case.",
      mimeType: "text/plain",
      complete: { style: ["upper", "lower", "title"] },
      read({ style, text }) {
        if (style === "upper") return text.toUpperCase();
        if (style === "lower") return text.toLowerCase();
        if (style === "title") return titleCase(text);
        throw new NotFound();
      },
    },
  },

  prompts: {
    rewrite: {
      title: "Rewrite",
      description: "Rewrites a text in a chosen tone.",
      arguments: {
        text: { description: "The text to rewrite.", required: true },
        tone: { description: "How it should sound; plain if not given." },
      },
      complete: { tone: ["concise", "formal", "friendly", "plain", "playful"] },
      render: ({ text, tone = "plain" }) =>
        `Rewrite the text below in a ${tone} tone. Keep its meaning and its language, and answer with the new text only.\n\n${text}`,
    },
  },
});
