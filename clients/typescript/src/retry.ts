/** Retry schedule: whether a call is repeated, and how long to wait before (pure). */

/** Answers that say "not now": the request was not carried out, or another attempt does no harm. */
const PASSING_STATUS: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** The first pause, before jitter, milliseconds. A market that is refilled takes about a second. */
const FIRST_PAUSE = 200;

/** The longest pause, before jitter, milliseconds. */
const LONGEST_PAUSE = 5_000;

/** Whether a later attempt may succeed where one was answered with this status. */
export function isPassing(status: number): boolean {
  return PASSING_STATUS.has(status);
}

/**
 * The pause before the attempt after `attempts`, milliseconds: random up to a bound that doubles, so that clients which
 * failed together do not come back together. What the service asks for by `Retry-After` is added to, never shortened.
 */
export function pauseAfter(attempts: number, retryAfter: number, random: number): number {
  const bound = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempts - 1));
  return retryAfter + Math.ceil(bound * random);
}

/** What `Retry-After` asks for, milliseconds: seconds or a date. 0 where it is absent or neither. */
export function retryAfter(header: string | null, now: number): number {
  if (header === null) {
    return 0;
  }
  if (/^\d+$/.test(header.trim())) {
    return Number(header) * 1_000;
  }
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
