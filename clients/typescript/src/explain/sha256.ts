/** SHA-256 without a promise, which the platform's own needs; for addresses, not for secrets (pure). */

/** The first 32 bits of the fractional parts of the roots of the first primes. */
function roots(count: number, root: (prime: number) => number): number[] {
  const primes: number[] = [];
  for (let candidate = 2; primes.length < count; candidate += 1) {
    if (primes.every((prime) => candidate % prime !== 0)) {
      primes.push(candidate);
    }
  }
  return primes.map((prime) => ((root(prime) % 1) * 2 ** 32) | 0);
}

const START = roots(8, Math.sqrt);
const ROUND = roots(64, Math.cbrt);

const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));

/** The hash of bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array((Math.floor((bytes.length + 8) / 64) + 1) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = [...START];
  for (let offset = 0; offset < padded.length; offset += 64) {
    block(state, view, offset);
  }
  const hash = new DataView(new ArrayBuffer(32));
  state.forEach((word, at) => hash.setInt32(at * 4, word));
  return new Uint8Array(hash.buffer);
}

function block(state: number[], view: DataView, offset: number): void {
  const words = Array.from({ length: 64 }, (_, at) => (at < 16 ? view.getInt32(offset + at * 4) : 0));
  const word = (at: number): number => words[at] ?? 0;
  for (let at = 16; at < 64; at += 1) {
    const [early, late] = [word(at - 15), word(at - 2)];
    const small = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const large = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[at] = (word(at - 16) + small + word(at - 7) + large) | 0;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let at = 0; at < 64; at += 1) {
    const choice = (e & f) ^ (~e & g);
    const first = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + (ROUND[at] ?? 0) + word(at)) | 0;
    const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((value, at) => {
    state[at] = ((state[at] ?? 0) + value) | 0;
  });
}
