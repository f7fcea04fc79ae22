import { quantity } from "./text.js";

const hunkHeader = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const linesMax = 2 ** 32 - 1;

export function summarizeDiff(diff) {
  const reader = new DiffReader();
  for (const line of diff.split("\n")) reader.read(line.replace(/\r$/, ""));
  const files = reader.files;
  if (files.length === 0) throw new Error('This is no unified diff: no line begins with "diff --git", "--- " or "+++ ".');
  const sum = (field) => files.reduce((total, file) => total + file[field], 0);
  return { files, additions: sum("additions"), deletions: sum("deletions") };
}

export function summaryOf({ files, additions, deletions }) {
  return [quantity(files.length, "file"), quantity(additions, "addition"), quantity(deletions, "deletion")].join(", ");
}

class DiffReader {
  files = [];
  // The lines that the hunk's header still promises.
  oldLeft = 0;
  newLeft = 0;
  // Whether the open file has had its "--- " line or a hunk, so that another "--- " starts the next one.
  settled = false;

  get file() {
    return this.files.at(-1);
  }

  start() {
    this.files.push({ path: "", change: "modified", additions: 0, deletions: 0 });
    this.settled = false;
  }

  read(line) {
    if ((this.oldLeft > 0 || this.newLeft > 0) && this.readInHunk(line)) return;
    this.oldLeft = 0;
    this.newLeft = 0;
    if (line.startsWith("diff --git ")) {
      this.start();
      const names = line.slice("diff --git ".length);
      const at = names.lastIndexOf(" b/");
      this.file.path = at < 0 ? names : names.slice(at + " b/".length);
    } else if (line.startsWith("--- ")) {
      if (!this.file || this.settled) this.start();
      this.settled = true;
      const path = headerPath(line);
      if (path === "/dev/null") this.file.change = "added";
      else this.file.path ||= path;
    } else if (line.startsWith("+++ ")) {
      if (!this.file) this.start();
      const path = headerPath(line);
      if (path === "/dev/null") this.file.change = "deleted";
      else this.file.path = path;
    } else if (this.file) {
      this.readHeader(line);
    }
  }

  readHeader(line) {
    const [, ...header] = hunkHeader.exec(line) ?? [];
    const [, oldLines, , newLines] = header.map((digits) => Number(digits ?? 1));
    if (line.startsWith("new file mode ")) this.file.change = "added";
    else if (line.startsWith("deleted file mode ")) this.file.change = "deleted";
    else if (line.startsWith("rename to ")) Object.assign(this.file, { change: "renamed", path: line.slice("rename to ".length) });
    else if (header.length > 0 && header.every((digits) => !(Number(digits) > linesMax))) {
      this.oldLeft = oldLines;
      this.newLeft = newLines;
      this.settled = true;
    }
  }

  readInHunk(line) {
    const isAddition = line.startsWith("+");
    const isDeletion = line.startsWith("-");
    const isContext = line === "" || line.startsWith(" ");
    if (isAddition) this.file.additions += 1;
    if (isDeletion) this.file.deletions += 1;
    if (isAddition || isContext) this.newLeft = Math.max(0, this.newLeft - 1);
    if (isDeletion || isContext) this.oldLeft = Math.max(0, this.oldLeft - 1);
    return isAddition || isDeletion || isContext || line.startsWith("\\");
  }
}

function headerPath(line) {
  return line
    .slice("--- ".length)
    .split("\t", 1)[0]
    .replace(/^[ab]\//, "");
}
