import assert from "node:assert/strict";
import { test } from "node:test";
import { randomness } from "../src/random.js";
import { decodeUtf8, encodeUtf8 } from "../src/utf8.js";

test("UTF-8 is as Node has it", () => {
  for (const text of ["", "a", "é漢😀", "\0\u{10ffff}", "a\ud800b\udc00"]) {
    assert.deepEqual([...encodeUtf8(text)], [...new TextEncoder().encode(text)]);
  }
  // All starts of two and three bytes, among them overlong forms, surrogates and what is cut off.
  for (let first = 0x7e; first < 256; first += 1) {
    for (let second = 0x7e; second < 256; second += 3) {
      for (const rest of [[], [0x80], [0x80, 0x80], [0x41]]) {
        const bytes = new Uint8Array([first, second, ...rest]);
        assert.equal(decodeUtf8(bytes), new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), String(bytes));
      }
    }
  }
  assert.throws(() => decodeUtf8(new Uint8Array([0xff]), true), TypeError);
});

function source() {
  let next = 0;
  const asked = [];
  const getBytes = (count) => {
    asked.push(count);
    return Uint8Array.from({ length: count }, () => (next = (next * 73 + 41) % 256));
  };
  return { asked, getBytes };
}

test("randomness is the host's, and refused while the snapshot is taken", () => {
  let running = false;
  const { asked, getBytes } = source();
  const { random, crypto } = randomness(getBytes, () => running);
  for (const use of [random, crypto.randomUUID, () => crypto.getRandomValues(new Uint8Array(1))]) {
    assert.throws(use, /while the module loads/);
  }
  assert.deepEqual(asked, []);
  running = true;
  const values = Array.from({ length: 1000 }, random);
  assert.ok(values.every((value) => value >= 0 && value < 1));
  assert.match(crypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notDeepEqual(crypto.getRandomValues(new Uint32Array(100)), new Uint32Array(100));
  assert.equal(asked.at(-1), 400);
});

test("all bits of Math.random can be set", () => {
  const { random } = randomness(
    (count) => new Uint8Array(count).fill(255),
    () => true,
  );
  assert.equal(random(), 1 - 2 ** -53);
});
