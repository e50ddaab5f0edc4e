/** JSON with exact integers: reads those of 64 bits as bigint, and writes bigint as integers. */

/** Stands before the digits of an integer that waits to become a bigint. No text of JSON holds it unescaped. */
const MARK = '\u0000';

/** A string with the colon that makes it a name, or a number: nothing else in JSON holds digits. */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"(?:\s*:)?|-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/g;

/** Reads JSON with every integer as bigint. Throws a SyntaxError where the text is no JSON. */
export function parseExact(text: string): unknown {
  const marked = text.replace(STRING_OR_NUMBER, (token: string, fraction?: string, exponent?: string) => {
    if (token.startsWith('"')) {
      // A string that begins with the mark gets a second one, so that it cannot be taken for an integer.
      return token.startsWith('"\\u0000') && !token.endsWith(':') ? `"\\u0000${token.slice(1)}` : token;
    }
    return fraction === undefined && exponent === undefined ? `"\\u0000${token}"` : token;
  });
  return JSON.parse(marked, (_key, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(MARK)) {
      return value;
    }
    const rest = value.slice(1);
    return rest.startsWith(MARK) ? rest : BigInt(rest);
  });
}

/**
 * Reads JSON with integers as bigint where a property is named in `wide`, and as numbers elsewhere. Below a property named
 * in `exact` every integer is a bigint. An integer that a number does not hold exactly is a bigint wherever it stands.
 */
export function parse(text: string, wide: ReadonlySet<string>, exact: ReadonlySet<string> = new Set()): unknown {
  return narrowed(parseExact(text), '', wide, exact);
}

function narrowed(value: unknown, name: string, wide: ReadonlySet<string>, exact: ReadonlySet<string>): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return wide.has(name) || !Number.isSafeInteger(number) ? value : number;
  }
  if (Array.isArray(value)) {
    return value.map((item) => narrowed(item, name, wide, exact));
  }
  if (value === null || typeof value !== 'object') {
    return value;
  }
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    exact.has(key) ? item : narrowed(item, key, wide, exact),
  ]);
  return Object.fromEntries(entries);
}

/** Writes JSON, with a bigint as the integer that it is. */
export function stringify(value: unknown): string {
  if (typeof value === 'bigint') {
    return value.toString();
  }
  if (value === null || typeof value !== 'object') {
    return JSON.stringify(value) ?? 'null';
  }
  if (Array.isArray(value)) {
    return `[${value.map(stringify).join(',')}]`;
  }
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  return `{${members.map(([key, item]) => `${JSON.stringify(key)}:${stringify(item)}`).join(',')}}`;
}
