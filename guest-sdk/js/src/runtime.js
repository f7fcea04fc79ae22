// Gives the engine what authors expect of a JavaScript runtime, out of WASI: must be the first import of a guest's bundle.

import clock from "wasi:clocks/monotonic-clock@0.2.12";
import stderr from "wasi:cli/stderr@0.2.12";
import hostRandom from "wasi:random/random@0.2.12";
import { GuestPromise, clearTimer, queueJob, setTimer, settle as settleWith } from "./promise.js";
import { randomness } from "./random.js";
import { decodeUtf8, encodeUtf8 } from "./utf8.js";

let running = false;
let origin = 0;

/** Called when an instance begins to work: the snapshot is behind us. */
export function start() {
  if (running) return;
  running = true;
  origin = clock.now();
}

const now = () => (running ? (clock.now() - origin) / 1e6 : 0);
const sleep = (milliseconds) => {
  const pollable = clock.subscribeDuration(Math.ceil(milliseconds * 1e6));
  pollable.block();
  pollable[Symbol.dispose]();
};

/** Runs an async function to its end. */
export const settle = (callback) => settleWith(callback, { now, sleep });

const { random, crypto } = randomness(
  (count) => hostRandom.getRandomBytes(count),
  () => running,
);
Math.random = random;

const timer =
  (every) =>
  (run, delay = 0, ...args) =>
    setTimer(() => run(...args), Math.max(0, Number(delay) || 0), every, now);

const globals = {
  Promise: GuestPromise,
  queueMicrotask: (run) => queueJob(() => run()),
  setTimeout: timer(false),
  setInterval: timer(true),
  clearTimeout: clearTimer,
  clearInterval: clearTimer,
  crypto,
  console: consoleOf(),
  performance: {
    now,
    get timeOrigin() {
      return Date.now() - now();
    },
  },
  TextEncoder: class TextEncoder {
    encoding = "utf-8";
    encode(text = "") {
      return encodeUtf8(String(text));
    }
  },
  TextDecoder: class TextDecoder {
    encoding = "utf-8";
    constructor(label = "utf-8", { fatal = false } = {}) {
      if (!/^utf-?8$/i.test(label)) throw new RangeError(`TextDecoder: ${label} is not supported, only utf-8`);
      this.fatal = fatal;
    }
    decode(data = new Uint8Array()) {
      return decodeUtf8(
        data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
        this.fatal,
      );
    }
  },
};
for (const [name, value] of Object.entries(globals)) Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });

// Writes to the guest's standard error, which the host puts into its log under the guest's name.
function consoleOf() {
  const show = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
    try {
      return JSON.stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };
  const write = (...values) => {
    // While the snapshot is taken there is nobody to write to.
    if (!running) return;
    const bytes = encodeUtf8(`${values.map(show).join(" ")}\n`);
    const stream = stderr.getStderr();
    // A stream takes at most 4096 bytes at a time.
    for (let at = 0; at < bytes.length; at += 4096) stream.blockingWriteAndFlush(bytes.subarray(at, at + 4096));
    stream[Symbol.dispose]();
  };
  return { log: write, info: write, debug: write, warn: write, error: write, trace: write };
}
