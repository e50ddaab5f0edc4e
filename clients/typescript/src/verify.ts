/** Verification of webhooks: whether a delivery comes from the service, and is not an old one sent again. */

import { bytesOfBase64 } from './base64.js';
import { parseExact } from './json.js';
import type { WebhookMessage } from './message.js';
import { SluiceError } from './problem.js';

/** The headers of a delivery: the platform's own kind, or that of Node's servers. */
export type DeliveryHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** How a delivery is verified. */
export interface VerifyOptions {
  /** How far the delivery's time may be from now, seconds. Default 300. */
  readonly toleranceSeconds?: number;
  /** The time of day, milliseconds. Default `Date.now()`. */
  readonly now?: number;
}

/** A message with the id that is the same at every retry and replay. */
export type IdentifiedMessage = WebhookMessage & { readonly id: string };

/** A delivery that was verified. */
export interface Delivery {
  /** The same at every retry and replay of the same messages. */
  readonly id: string;
  /** When it was sent. */
  readonly sent: Date;
  /** The message; of a webhook with `batch` the first one, where `messages` has all of them. */
  readonly message: WebhookMessage;
  /** All messages, in order: several of a webhook with `batch`, one of any other. Keep the ids that were handled. */
  readonly messages: readonly IdentifiedMessage[];
}

/** A delivery that is not to be believed. Answer it with a status of 400. */
export class VerificationError extends SluiceError {
  override readonly name = 'VerificationError';
}

/** Before the base64 of a secret. */
const SECRET_PREFIX = 'whsec_';

/** Before the base64 of a public key, which verifies and cannot sign. */
const PUBLIC_KEY_PREFIX = 'whpk_';

/** Before a signature: under a secret, and under what a public key verifies. Other versions are passed over. */
const SIGNATURE_PREFIXES = { HMAC: 'v1,', Ed25519: 'v1a,' } as const;

/** Length of a public key, bytes. */
const PUBLIC_KEY_BYTES = 32;

/** How far a clock may be off, seconds; what Standard Webhooks recommends. */
const TOLERANCE = 300;

/** The most that a compressed body may become, bytes: an account of 10 MiB is 14 MiB in base64. */
const MOST_BYTES = 32 * 1024 * 1024;

/** The most signatures that are looked at: the secret and those before it that still sign are five at most, of two versions. */
const MOST_SIGNATURES = 16;

/**
 * Verifies a delivery by Standard Webhooks 1.0 and reads its body.
 *
 * `body` is what arrived, before it was parsed; it may be compressed still, as bodies of a webhook with `gzip` are. Of
 * several secrets, or public keys of webhooks with `v1a` among their signatures, one must have signed. Comparison takes the same time whatever differs.
 */
export async function verify(
  body: string | Uint8Array,
  headers: DeliveryHeaders,
  secrets: string | readonly string[],
  options: VerifyOptions = {},
): Promise<Delivery> {
  const id = header(headers, 'webhook-id');
  const seconds = timestamp(header(headers, 'webhook-timestamp'), options);
  const signatures = header(headers, 'webhook-signature')
    .split(' ')
    .slice(0, MOST_SIGNATURES);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : await plain(body);
  const head = new TextEncoder().encode(`${id}.${seconds}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  let matches = false;
  for (const secret of [secrets].flat()) {
    const [algorithm, key] = await importKey(secret);
    const prefix = SIGNATURE_PREFIXES[algorithm];
    for (const text of signatures) {
      const signature = text.startsWith(prefix) ? bytesOfBase64(text.slice(prefix.length)) : undefined;
      // The platform compares in constant time.
      if (signature !== undefined && (await crypto.subtle.verify(algorithm, key, signature, signed))) {
        matches = true;
      }
    }
  }
  if (!matches) {
    throw new VerificationError('no signature of webhook-signature is of this body and secret');
  }
  const read = parseExact(new TextDecoder().decode(bytes)) as WebhookMessage | IdentifiedMessage[];
  const messages = Array.isArray(read) ? read : [{ ...read, id }];
  const [message] = messages;
  if (message === undefined) {
    throw new VerificationError('the body is an array without a message');
  }
  return { id, sent: new Date(seconds * 1_000), message: Array.isArray(read) ? message : read, messages };
}

function header(headers: DeliveryHeaders, name: string): string {
  const value = optionalHeader(headers, name);
  if (value === undefined || value === '') {
    throw new VerificationError(`the header ${name} is missing`);
  }
  return value;
}

function optionalHeader(headers: DeliveryHeaders, name: string): string | undefined {
  if (headers instanceof Headers) {
    return headers.get(name) ?? undefined;
  }
  const key = Object.keys(headers).find((key) => key.toLowerCase() === name);
  const value = key === undefined ? undefined : headers[key];
  return typeof value === 'string' || value === undefined ? value : value.join(' ');
}

function timestamp(text: string, { now = Date.now(), toleranceSeconds = TOLERANCE }: VerifyOptions): number {
  // Without a sign, a fraction or leading zeros, so that one time has one text.
  if (!/^(0|[1-9]\d{0,14})$/.test(text)) {
    throw new VerificationError('webhook-timestamp is not Unix time in seconds');
  }
  const seconds = Number(text);
  const difference = Math.abs(now / 1_000 - seconds);
  if (!(difference <= toleranceSeconds)) {
    const off = Math.round(difference);
    throw new VerificationError(`webhook-timestamp is ${off} s from now, more than ${toleranceSeconds}: check the clock`);
  }
  return seconds;
}

async function importKey(secret: string): Promise<['HMAC' | 'Ed25519', CryptoKey]> {
  const isPublic = secret.startsWith(PUBLIC_KEY_PREFIX);
  const prefix = isPublic ? PUBLIC_KEY_PREFIX : SECRET_PREFIX;
  const key = bytesOfBase64(secret.startsWith(prefix) ? secret.slice(prefix.length) : secret);
  if (key === undefined || key.length === 0 || (isPublic && key.length !== PUBLIC_KEY_BYTES)) {
    // Not a fault of the delivery, and its text never goes into a log.
    throw new TypeError('the secret is not one: it begins with whsec_, or a public key with whpk_, and goes on in base64');
  }
  const algorithm = isPublic ? 'Ed25519' : 'HMAC';
  const parameters = isPublic ? { name: algorithm } : { name: algorithm, hash: 'SHA-256' };
  return [algorithm, await crypto.subtle.importKey('raw', key, parameters, false, ['verify'])];
}

/** What was signed: the body, without the compression of a long one where the platform has left that in place. */
async function plain(body: Uint8Array): Promise<Uint8Array> {
  if (body[0] !== 0x1f || body[1] !== 0x8b) {
    return body;
  }
  const stream = new Blob([new Uint8Array(body)]).stream().pipeThrough(new DecompressionStream('gzip'));
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > MOST_BYTES) {
        break;
      }
    }
  } catch {
    length = Infinity;
  }
  if (length > MOST_BYTES) {
    throw new VerificationError(`the body is not gzip, or longer than ${MOST_BYTES} bytes`);
  }
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}
