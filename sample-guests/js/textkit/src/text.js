// Unicode's White_Space, which is not quite what \s is: U+0085 belongs to it, and U+FEFF does not.
const space = /\p{White_Space}+/u;

export function countWords(text) {
  const lines = text.split("\n");
  return {
    words: text.split(space).filter((word) => word !== "").length,
    characters: [...text].length,
    lines: lines.at(-1) === "" ? lines.length - 1 : lines.length,
  };
}

export function slugify(text) {
  // Vowel signs, which are no letters, are alphabetic too.
  const words = text.toLowerCase().match(/[\p{Alphabetic}\p{N}]+/gu);
  if (!words) throw new Error("The text has no letter or digit.");
  return words.join("-");
}

export function titleCase(text) {
  return text.replace(/\P{White_Space}+/gu, (word) => {
    const [first, ...rest] = word;
    return first.toUpperCase() + rest.join("").toLowerCase();
  });
}

export function quantity(n, noun) {
  return n === 1 ? `1 ${noun}` : `${n} ${noun}s`;
}
