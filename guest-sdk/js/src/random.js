// Randomness that comes from the host whenever it is asked for. A guest is a snapshot taken when it was built: whatever was
// random then would be the same in every instance for ever.

/** Makes the functions of the language out of the host's bytes. `running` says whether the snapshot is behind us. */
export function randomness(getBytes, running) {
  let pool = new Uint8Array();
  const take = (count, who) => {
    if (!running()) {
      throw new Error(
        `${who} while the module loads would give every instance of the guest the same value; call it inside a handler or in init`,
      );
    }
    if (count > 64) return getBytes(count);
    // Small amounts come from a pool, which lives no longer than its instance.
    if (pool.length < count) pool = getBytes(512);
    const bytes = pool.subarray(0, count);
    pool = pool.subarray(count);
    return bytes;
  };
  const random = () => {
    const [a, b, c, d, e, f, g] = take(7, "Math.random()");
    // 53 bits, as many as a number has.
    return ((a & 31) * 2 ** 48 + ((b << 16) | (c << 8) | d) * 2 ** 24 + ((e << 16) | (f << 8) | g)) / 2 ** 53;
  };
  const getRandomValues = (array) => {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(take(array.byteLength, "crypto.getRandomValues()"));
    return array;
  };
  const randomUUID = () => {
    const bytes = take(16, "crypto.randomUUID()").slice();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  };
  return { random, crypto: { getRandomValues, randomUUID } };
}
