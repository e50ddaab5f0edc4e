/** Faults: what of a transaction is not as it was quoted and asked for. */

/** Stable name of a fault. */
export type FaultCode =
  | 'unreadable'
  | 'noSwap'
  | 'notAsQuoted'
  | 'wrongWallet'
  | 'wrongDestination'
  | 'feeTooHigh'
  | 'wrapsTooMuch'
  | 'leavesWrapped'
  | 'unknownInstruction';

/** One of them. */
export interface Fault {
  readonly code: FaultCode;
  /** Position of the instruction; undefined where it is of the whole transaction. */
  readonly instruction: number | undefined;
  /** What is wrong, with what would be right. */
  readonly detail: string;
}

/** Faults as they are found. */
export class Faults {
  readonly list: Fault[] = [];

  add(code: FaultCode, instruction: number | undefined, detail: string): void {
    this.list.push({ code, instruction, detail });
  }
}
