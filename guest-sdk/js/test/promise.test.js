import assert from "node:assert/strict";
import { test } from "node:test";
import { GuestPromise, clearTimer, setTimer, settle } from "../src/promise.js";

// A clock that only sleeping moves.
function clock() {
  let time = 0;
  const slept = [];
  return {
    slept,
    now: () => time,
    sleep: (milliseconds) => {
      slept.push(milliseconds);
      time += milliseconds;
    },
  };
}

const run = (start) => settle(start, clock());

test("settle gives values and throws errors, of values and of promises", () => {
  assert.equal(
    run(() => 1),
    1,
  );
  assert.equal(
    run(() => GuestPromise.resolve(2)),
    2,
  );
  assert.equal(
    run(() => new GuestPromise((resolve) => resolve(GuestPromise.resolve(3)))),
    3,
  );
  assert.equal(
    run(() => ({ then: (resolve) => resolve(4) })),
    4,
  );
  assert.throws(() => run(() => GuestPromise.reject(new Error("no"))), /no/);
  assert.throws(
    () =>
      run(() =>
        GuestPromise.resolve().then(() => {
          throw new Error("later");
        }),
      ),
    /later/,
  );
  assert.throws(
    () =>
      run(() => {
        throw new Error("at once");
      }),
    /at once/,
  );
});

test("a promise that nothing settles is an error, not a hang", () => {
  assert.throws(() => run(() => new GuestPromise(() => {})), /nothing will settle/);
});

test("handlers run later, in order, and once", () => {
  const seen = [];
  run(() => {
    const promise = new GuestPromise((resolve, reject) => {
      resolve("a");
      resolve("b");
      reject("c");
    });
    promise.then((value) => seen.push(value, 1));
    promise.then(() => seen.push(2));
    seen.push(0);
    return promise.then(() => seen.push(3));
  });
  assert.deepEqual(seen, [0, "a", 1, 2, 3]);
});

test("catch, finally and a handler that waits", () => {
  assert.equal(
    run(() => GuestPromise.reject(1).catch((error) => error + 1)),
    2,
  );
  assert.equal(
    run(() => GuestPromise.resolve(1).finally(() => 5)),
    1,
  );
  assert.throws(
    () =>
      run(() =>
        GuestPromise.resolve(1).finally(() => {
          throw new Error("f");
        }),
      ),
    /f/,
  );
  assert.equal(
    run(() => GuestPromise.resolve(1).then((n) => GuestPromise.resolve(n + 1))),
    2,
  );
  assert.equal(
    run(() => GuestPromise.resolve(7).then(undefined)),
    7,
  );
  assert.throws(
    () =>
      run(() => {
        const p = GuestPromise.resolve().then(() => p);
        return p;
      }),
    /itself/,
  );
});

test("the ways to wait for several", () => {
  const late = (value, delay, at) => new GuestPromise((resolve) => setTimer(() => resolve(value), delay, false, at.now));
  const time = clock();
  assert.deepEqual(
    settle(() => GuestPromise.all([late("a", 20, time), "b", late("c", 10, time)]), time),
    ["a", "b", "c"],
  );
  assert.deepEqual(time.slept, [10, 10]);
  assert.deepEqual(
    run(() => GuestPromise.all([])),
    [],
  );
  assert.throws(() => run(() => GuestPromise.all([1, GuestPromise.reject(new Error("one"))])), /one/);
  assert.equal(
    run(() => GuestPromise.race([new GuestPromise(() => {}), 2])),
    2,
  );
  assert.equal(
    run(() => GuestPromise.any([GuestPromise.reject(1), 2])),
    2,
  );
  assert.throws(
    () => run(() => GuestPromise.any([GuestPromise.reject(1)])),
    (error) => error instanceof AggregateError && error.errors[0] === 1,
  );
  assert.deepEqual(
    run(() => GuestPromise.allSettled([1, GuestPromise.reject(2)])),
    [
      { status: "fulfilled", value: 1 },
      { status: "rejected", reason: 2 },
    ],
  );
});

test("timers run in the order of their times, and can be cleared", () => {
  const time = clock();
  const seen = [];
  settle(() => {
    const every = setTimer(() => seen.push(`every ${time.now()}`), 10, true, time.now);
    clearTimer(setTimer(() => seen.push("never"), 5, false, time.now));
    return new GuestPromise((resolve) => setTimer(resolve, 25, false, time.now)).then(() => clearTimer(every));
  }, time);
  assert.deepEqual(seen, ["every 10", "every 20"]);
});
