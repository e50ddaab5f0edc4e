/** Base 58, in which addresses and blockhashes are written. */

const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';

/** Digits that are split off at once: as many as a number holds exactly. */
const CHUNK = 9;
const CHUNK_BASE = 58n ** BigInt(CHUNK);

/** The text of bytes. */
export function base58(bytes: Uint8Array): string {
  let zeros = 0;
  while (zeros < bytes.length && bytes[zeros] === 0) {
    zeros += 1;
  }
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  let number = BigInt(`0x0${hex}`);
  let text = '';
  while (number > 0n) {
    let chunk = Number(number % CHUNK_BASE);
    number /= CHUNK_BASE;
    for (let digit = 0; digit < CHUNK && (number > 0n || chunk > 0); digit += 1) {
      text = ALPHABET.charAt(chunk % 58) + text;
      chunk = Math.floor(chunk / 58);
    }
  }
  return '1'.repeat(zeros) + text;
}

/** The 32 bytes of an address. Throws a TypeError where the text is none. */
export function bytesOfBase58(text: string): Uint8Array {
  let number = 0n;
  for (const character of text) {
    const digit = ALPHABET.indexOf(character);
    if (digit < 0) {
      throw new TypeError(`${text} is not an address: 32 bytes in base 58`);
    }
    number = number * 58n + BigInt(digit);
  }
  const bytes = Uint8Array.from({ length: 32 }, (_, at) => Number((number >> BigInt(8 * (31 - at))) & 0xffn));
  if (base58(bytes) !== text) {
    throw new TypeError(`${text} is not an address: 32 bytes in base 58`);
  }
  return bytes;
}
