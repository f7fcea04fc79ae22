// UTF-8 for an engine that has no TextEncoder and no TextDecoder.

/** The bytes of a text; a lone surrogate becomes U+FFFD. */
export function encodeUtf8(text) {
  const bytes = [];
  for (const character of text) {
    let point = character.codePointAt(0);
    if (point >= 0xd800 && point <= 0xdfff) point = 0xfffd;
    if (point < 0x80) bytes.push(point);
    else if (point < 0x800) bytes.push(0xc0 | (point >> 6), tail(point, 0));
    else if (point < 0x10000) bytes.push(0xe0 | (point >> 12), tail(point, 6), tail(point, 0));
    else bytes.push(0xf0 | (point >> 18), tail(point, 12), tail(point, 6), tail(point, 0));
  }
  return new Uint8Array(bytes);
}

const tail = (point, shift) => 0x80 | ((point >> shift) & 0x3f);

/** The text of some bytes. What is no UTF-8 becomes U+FFFD, or is an error when fatal. */
export function decodeUtf8(bytes, fatal = false) {
  let text = "";
  for (let at = 0; at < bytes.length;) {
    const { point, length } = next(bytes, at);
    if (point === undefined && fatal) throw new TypeError("the data is not valid UTF-8");
    text += point === undefined ? "\ufffd" : String.fromCodePoint(point);
    at += length;
  }
  return text;
}

// The smallest code point that may take so many bytes; longer forms of smaller ones are invalid.
const smallest = [0, 0, 0x80, 0x800, 0x10000];

function next(bytes, at) {
  const first = bytes[at];
  if (first < 0x80) return { point: first, length: 1 };
  const size = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xc2 && first < 0xe0 ? 2 : 0;
  let point = first & (0x7f >> size);
  for (let i = 1; i < size; i += 1) {
    const byte = bytes[at + i];
    if (byte === undefined || (byte & 0xc0) !== 0x80 || !possible(first, i, byte)) return { length: i };
    point = (point << 6) | (byte & 0x3f);
  }
  if (size === 0 || point < smallest[size]) return { length: 1 };
  return { point, length: size };
}

// The second byte tells overlong forms, surrogates and what is beyond Unicode, so that each wrong sequence becomes as many
// replacement characters as the Encoding Standard asks for.
function possible(first, index, byte) {
  if (index !== 1) return true;
  if (first === 0xe0) return byte >= 0xa0;
  if (first === 0xed) return byte < 0xa0;
  if (first === 0xf0) return byte >= 0x90;
  if (first === 0xf4) return byte < 0x90;
  return true;
}
