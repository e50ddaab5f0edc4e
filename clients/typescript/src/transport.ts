/** Transport: sends a request, repeats it where that is safe, and reads the answer. */

import { OPERATIONS, WIDE } from './generated/operations.js';
import { parse, stringify } from './json.js';
import { ConnectionError, ProblemError, TimeoutError, isProblem } from './problem.js';
import { isPassing, pauseAfter, retryAfter } from './retry.js';

/** How the service is reached. */
export interface ClientOptions {
  /** Where it listens, such as `https://sluice.example`. */
  readonly url: string | URL;
  /** API key, for webhooks. */
  readonly apiKey?: string;
  /** How long a call may take, its repetitions included, milliseconds. Default 10,000. */
  readonly timeoutMs?: number;
  /** How often an idempotent call is sent at most. Default 4. */
  readonly attempts?: number;
  /** Instead of the platform's own. */
  readonly fetch?: typeof fetch;
  /** Instead of the platform's own, which Node has from 22 on. */
  readonly webSocket?: typeof WebSocket;
  /** Source of the jitter, 0 to 1. Default `Math.random`. */
  readonly random?: () => number;
}

/** What a single call may set. */
export interface CallOptions {
  /** Ends the call, its pauses included. */
  readonly signal?: AbortSignal;
  /** Instead of the client's, milliseconds. */
  readonly timeoutMs?: number;
}

/** What a call may set that is named across its repetitions, those of a program that starts anew included. */
export interface NamedCallOptions extends CallOptions {
  /** Under one key the service gives one answer, so that nothing is created or signed twice. */
  readonly idempotencyKey?: string;
}

/** Name of an operation in the API's document. */
export type OperationName = keyof typeof OPERATIONS;

/** Method and path of an operation. */
export type Target = readonly [method: string, path: string];

/** What a request says beside its operation. */
export interface RequestParts {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: object | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Operations of POST that may be repeated: they change nothing, or twice the same as once. */
const REPEATABLE: ReadonlySet<OperationName> = new Set<OperationName>([
  'buildTransaction',
  'buildInstruction',
  'checkTransaction',
  'sendTransaction',
]);

/** Members that hold what was delivered to a webhook: every integer in it is a bigint. */
const EXACT: ReadonlySet<string> = new Set(['body']);

const DEFAULT_TIMEOUT = 10_000;
const DEFAULT_ATTEMPTS = 4;

/** Sends requests to one service. */
export class Transport {
  readonly #options: ClientOptions;
  readonly #fetch: typeof fetch;

  constructor(options: ClientOptions) {
    this.#options = options;
    // Called as a function of nothing: browsers refuse a `fetch` of another object.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** Carries out an operation and reads its answer as JSON; undefined where it has no body. */
  async call<Answer>(name: OperationName, parts: RequestParts = {}, options: CallOptions = {}): Promise<Answer> {
    const deadline = new Deadline(options.timeoutMs ?? this.#options.timeoutMs ?? DEFAULT_TIMEOUT, options.signal);
    try {
      return await this.#attempts(name, parts, deadline);
    } finally {
      deadline.clear();
    }
  }

  /** Begins an operation whose answer goes on; the answer's body is read by the caller. One attempt, no deadline. */
  async open(target: Target, parts: RequestParts, signal: AbortSignal | undefined): Promise<Response> {
    const response = await this.#send(target, parts, signal);
    if (!response.ok) {
      throw problemError(response, await response.text(), 1);
    }
    return response;
  }

  /** Begins the WebSocket of a stream; undefined where the platform has none. */
  socket(target: Target, parts: RequestParts): WebSocket | undefined {
    const Socket: typeof WebSocket | undefined = this.#options.webSocket ?? globalThis.WebSocket;
    return Socket && new Socket(this.#address(target, parts).replace(/^http/i, 'ws'));
  }

  /** A random number from 0 to 1. */
  random(): number {
    return (this.#options.random ?? Math.random)();
  }

  async #attempts<Answer>(name: OperationName, parts: RequestParts, deadline: Deadline): Promise<Answer> {
    const most = isIdempotent(name, parts) ? (this.#options.attempts ?? DEFAULT_ATTEMPTS) : 1;
    for (let attempts = 1; ; attempts += 1) {
      let failure: unknown;
      let asked = 0;
      try {
        const response = await this.#send(OPERATIONS[name], parts, deadline.signal);
        const text = await response.text();
        if (response.ok || (name === 'ready' && response.status === 503)) {
          return read(text) as Answer;
        }
        asked = retryAfter(response.headers.get('retry-after'), Date.now());
        failure = problemError(response, text, attempts);
        if (!isPassing(response.status)) {
          throw failure;
        }
      } catch (error) {
        if (error === failure) {
          throw error;
        }
        failure = deadline.failure(error);
        if (deadline.signal.aborted) {
          throw failure;
        }
      }
      const pause = pauseAfter(attempts, asked, this.random());
      // A pause that outlasts the call would only hide what failed.
      if (attempts >= most || pause >= deadline.left()) {
        throw failure;
      }
      await deadline.pause(pause);
    }
  }

  #address([, template]: Target, parts: RequestParts): string {
    const path = template.replace(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(parts.path?.[key] ?? ''));
    return String(this.#options.url).replace(/\/+$/, '') + path + queryText(parts.query);
  }

  async #send(target: Target, parts: RequestParts, signal: AbortSignal | undefined): Promise<Response> {
    const [method] = target;
    const address = this.#address(target, parts);
    const headers = new Headers(parts.headers);
    headers.set('accept', headers.get('accept') ?? 'application/json');
    if (this.#options.apiKey !== undefined) {
      headers.set('authorization', `Bearer ${this.#options.apiKey}`);
    }
    const request: RequestInit = { method, headers };
    if (parts.body !== undefined) {
      headers.set('content-type', 'application/json');
      request.body = stringify(parts.body);
    }
    if (signal !== undefined) {
      request.signal = signal;
    }
    try {
      return await this.#fetch(address, request);
    } catch (cause) {
      if (signal?.aborted) {
        throw cause;
      }
      throw new ConnectionError(`${method} ${address.replace(/\?.*/s, '')} was not answered`, { cause });
    }
  }
}

/** Whether a request may be repeated: it changes nothing, or the same again. */
function isIdempotent(name: OperationName, parts: RequestParts): boolean {
  const [method] = OPERATIONS[name];
  // Repeated under the version that it replaced itself, a change would be refused.
  if (parts.headers?.['if-match'] !== undefined) {
    return false;
  }
  if (parts.headers?.['idempotency-key'] !== undefined) {
    return true;
  }
  return method === 'GET' || method === 'PUT' || method === 'DELETE' || REPEATABLE.has(name);
}

function read(text: string): unknown {
  if (text === '') {
    return undefined;
  }
  try {
    return readAnswer(text);
  } catch (cause) {
    throw new ConnectionError('the answer is no JSON: is the URL that of the service?', { cause });
  }
}

/** Reads JSON of the service as its answers are read. */
export function readAnswer(text: string): unknown {
  return parse(text, WIDE, EXACT);
}

function problemError(response: Response, text: string, attempts: number): Error {
  let document: unknown;
  try {
    document = parse(text, WIDE);
  } catch {
    document = undefined;
  }
  if (!isProblem(document)) {
    return new ConnectionError(`status ${response.status} without a problem document: is the URL that of the service?`);
  }
  return new ProblemError(document, response.headers.get('x-request-id') ?? undefined, attempts);
}

function queryText(query: object | undefined): string {
  const entries = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(entries.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

/** When a call has to end, and the signal that ends it. */
class Deadline {
  readonly #controller = new AbortController();
  readonly #ends: number;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #outer: AbortSignal | undefined;
  readonly #abort = (): void => this.#controller.abort(this.#outer?.reason);

  constructor(timeoutMs: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    this.#ends = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => {
      this.#controller.abort(new TimeoutError(`no answer within ${timeoutMs} ms; ask again, or with a larger timeoutMs`));
    }, timeoutMs);
    if (outer?.aborted) {
      this.#abort();
    }
    outer?.addEventListener('abort', this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Time that is left, milliseconds. */
  left(): number {
    return this.#ends - performance.now();
  }

  /** What a failed attempt is to the caller: the signal's reason where the call was ended. */
  failure(error: unknown): unknown {
    return this.signal.aborted ? this.signal.reason : error;
  }

  pause(milliseconds: number): Promise<void> {
    return pause(milliseconds, this.signal);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#abort);
  }
}

/** Waits; rejects with the signal's reason when it is aborted before. */
export function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
