/** Errors of calls: a problem that the service names, and a call that got no answer. */

import type { components } from './generated/schema.js';

/** The problem document that the service answers (RFC 9457). Some codes have members beside these. */
export type Problem = components['schemas']['Problem'];

/** Stable names of problems. A newer service may know more. */
export type ProblemCode = Problem['code'];

/** Every way in which a call fails, except that its signal was aborted, which throws the signal's own reason. */
export class SluiceError extends Error {
  override readonly name: string = 'SluiceError';
}

/** The service answered with a problem: `code` says which. */
export class ProblemError<Code extends ProblemCode = ProblemCode> extends SluiceError {
  override readonly name = 'ProblemError';
  /** Stable name of the problem. */
  readonly code: Code;
  /** HTTP status. */
  readonly status: number;
  /** Whether the same request may succeed later. */
  readonly retryable: boolean;
  /** The whole document, with the members that belong to the code. */
  readonly problem: Problem & Readonly<Record<string, unknown>>;
  /** Names the request in the service's log. */
  readonly requestId: string | undefined;
  /** How many times the request was sent. */
  readonly attempts: number;

  constructor(problem: Problem & Record<string, unknown>, requestId: string | undefined, attempts: number) {
    super(`${problem.code}: ${problem.detail}`);
    this.code = problem.code as Code;
    this.status = problem.status;
    this.retryable = problem.retryable;
    this.problem = problem;
    this.requestId = requestId;
    this.attempts = attempts;
  }

  /** Whether this is a problem of that code. */
  is<Wanted extends ProblemCode>(code: Wanted): this is ProblemError<Wanted> {
    return (this.code as ProblemCode) === code;
  }
}

/** The service was not reached, or what answered was not it. */
export class ConnectionError extends SluiceError {
  override readonly name = 'ConnectionError';
}

/** The call had no answer within its time. */
export class TimeoutError extends SluiceError {
  override readonly name = 'TimeoutError';
}

/** Whether a value is a problem document. */
export function isProblem(value: unknown): value is Problem & Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'code' in value &&
    typeof value.code === 'string' &&
    'detail' in value &&
    'status' in value
  );
}
