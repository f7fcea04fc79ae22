// Promises whose jobs we run ourselves.
//
// A guest's exports are synchronous, and the engine runs its own promise jobs only after an export has returned: too late for
// an async handler. So a guest's bundle is compiled to have no async functions of the engine's, and uses this Promise; settle
// then runs jobs, and waits for timers, until a handler's promise is settled.

const jobs = [];
const timers = new Map();
let lastTimer = 0;

/** Runs a function after the current one, before anything else. */
export function queueJob(job) {
  jobs.push(job);
}

/** Runs a function after some milliseconds, or later: while a handler waits. */
export function setTimer(run, delay, every, now) {
  lastTimer += 1;
  timers.set(lastTimer, { run, at: now() + delay, every: every ? Math.max(delay, 1) : undefined });
  return lastTimer;
}

/** Forgets a timer. */
export function clearTimer(id) {
  timers.delete(id);
}

/**
 * Runs an async function to its end and gives what it gave, or throws what it threw. `now` and `sleep` deal in milliseconds.
 * What others have scheduled keeps its place, and runs only as far as this function needs it.
 */
export function settle(start, { now, sleep }) {
  const promise = GuestPromise.resolve(start());
  while (promise.state === "pending") {
    const job = jobs.shift();
    if (job) job();
    else if (timers.size > 0) runTimer(now, sleep);
    else throw new Error("the handler waits for a promise that nothing will settle");
  }
  if (promise.state === "rejected") throw promise.value;
  return promise.value;
}

function runTimer(now, sleep) {
  const [id, timer] = [...timers].reduce((first, other) => (other[1].at < first[1].at ? other : first));
  const wait = timer.at - now();
  if (wait > 0) sleep(wait);
  if (timer.every === undefined) timers.delete(id);
  else timer.at = now() + timer.every;
  timer.run();
}

/** The Promise of the language, as far as a program can tell. */
export class GuestPromise {
  state = "pending";
  value = undefined;
  #reactions = [];

  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError("the argument of Promise must be a function");
    const { resolve, reject } = this.#resolvers();
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  get [Symbol.toStringTag]() {
    return "Promise";
  }

  // One pair that works once: whichever is called first decides.
  #resolvers() {
    let called = false;
    const once = (act) => (value) => {
      if (called) return;
      called = true;
      act(value);
    };
    return { resolve: once((value) => this.#resolve(value)), reject: once((error) => this.#settle("rejected", error)) };
  }

  #resolve(value) {
    if (value === this) return this.#settle("rejected", new TypeError("a promise cannot wait for itself"));
    if (value === null || (typeof value !== "object" && typeof value !== "function")) return this.#settle("fulfilled", value);
    let then;
    try {
      then = value.then;
    } catch (error) {
      return this.#settle("rejected", error);
    }
    if (typeof then !== "function") return this.#settle("fulfilled", value);
    queueJob(() => {
      const { resolve, reject } = this.#resolvers();
      try {
        then.call(value, resolve, reject);
      } catch (error) {
        reject(error);
      }
    });
  }

  #settle(state, value) {
    this.state = state;
    this.value = value;
    const reactions = this.#reactions;
    this.#reactions = [];
    for (const react of reactions) queueJob(react);
  }

  then(onFulfilled, onRejected) {
    return new this.constructor((resolve, reject) => {
      const react = () => {
        const handler = this.state === "fulfilled" ? onFulfilled : onRejected;
        if (typeof handler !== "function") {
          (this.state === "fulfilled" ? resolve : reject)(this.value);
          return;
        }
        try {
          resolve(handler(this.value));
        } catch (error) {
          reject(error);
        }
      };
      if (this.state === "pending") this.#reactions.push(react);
      else queueJob(react);
    });
  }

  catch(onRejected) {
    return this.then(undefined, onRejected);
  }

  finally(act) {
    if (typeof act !== "function") return this.then(act, act);
    const Self = this.constructor;
    return this.then(
      (value) => Self.resolve(act()).then(() => value),
      (error) =>
        Self.resolve(act()).then(() => {
          throw error;
        }),
    );
  }

  static resolve(value) {
    return value instanceof this && value.constructor === this ? value : new this((resolve) => resolve(value));
  }

  static reject(error) {
    return new this((_, reject) => reject(error));
  }

  static withResolvers() {
    const parts = {};
    parts.promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
    return parts;
  }

  static try(act, ...args) {
    return new this((resolve) => resolve(act(...args)));
  }

  static all(values) {
    return collect(this, values, (slot, promise, { done, reject }) => promise.then((value) => done(slot, value), reject));
  }

  static allSettled(values) {
    return collect(this, values, (slot, promise, { done }) =>
      promise.then(
        (value) => done(slot, { status: "fulfilled", value }),
        (reason) => done(slot, { status: "rejected", reason }),
      ),
    );
  }

  static any(values) {
    const flip = (promise) =>
      promise.then(
        (value) => this.reject(value),
        (error) => error,
      );
    // All of them failing is what makes the flipped ones all succeed.
    return flip(this.all([...values].map((value) => flip(this.resolve(value))))).then(
      (value) => value,
      (errors) => {
        throw new AggregateError(errors, "no promise was fulfilled");
      },
    );
  }

  static race(values) {
    return new this((resolve, reject) => {
      for (const value of values) this.resolve(value).then(resolve, reject);
    });
  }
}

function collect(Self, values, watch) {
  return new Self((resolve, reject) => {
    const list = [];
    let open = 1;
    const finish = () => {
      open -= 1;
      if (open === 0) resolve(list);
    };
    const done = (slot, value) => {
      list[slot] = value;
      finish();
    };
    let slot = 0;
    for (const value of values) {
      open += 1;
      watch(slot, Self.resolve(value), { done, reject });
      slot += 1;
    }
    finish();
  });
}
