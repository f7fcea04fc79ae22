// Matches URIs against the templates of RFC 6570 that can be matched without doubt: literals, {name} for one path segment,
// and {+name} for anything.

const variable = /\{([^{}]*)\}/g;

/** Reads a template; throws a sentence about what in it cannot be matched. */
export function parseTemplate(text) {
  const names = [];
  let pattern = "";
  let end = 0;
  for (const found of text.matchAll(variable)) {
    const bare = found[1].startsWith("+") ? found[1].slice(1) : found[1];
    if (!/^[A-Za-z0-9_]+$/.test(bare)) throw new TypeError(`template "${text}": ${found[0]} is not supported; use {name} or {+name}`);
    if (names.includes(bare)) throw new TypeError(`template "${text}": {${bare}} occurs twice`);
    if (found.index === end && names.length > 0) {
      throw new TypeError(`template "${text}": put something between ${found[0]} and the variable before it`);
    }
    pattern += escape(text.slice(end, found.index)) + (bare === found[1] ? "([^/?#]+)" : "([\\s\\S]+)");
    names.push(bare);
    end = found.index + found[0].length;
  }
  const rest = text.slice(end);
  if (/[{}]/.test(text.replaceAll(variable, ""))) throw new TypeError(`template "${text}": a brace has no partner`);
  const expression = new RegExp(`^${pattern}${escape(rest)}$`);
  return { names, match: (uri) => match(expression, names, uri) };
}

function match(expression, names, uri) {
  const found = expression.exec(uri);
  if (!found) return undefined;
  try {
    return Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])]));
  } catch {
    // Broken percent-encoding fits no resource.
    return undefined;
  }
}

function escape(literal) {
  return literal.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
