// JSON with exact integers.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseJson, stringifyJson } from '@sluice/client';

const wide = new Set(['amount', 'slot']);
const exact = new Set(['body']);

test('integers of 64 bits are read as they are, by the name of their property', () => {
  const text = '{"amount":18446744073709551615,"slot":7,"bps":50,"price":1.5,"big":9007199254740993,"e":1e3,"n":-3}';
  assert.deepEqual(parseJson(text, wide), {
    amount: 18446744073709551615n,
    slot: 7n,
    bps: 50,
    price: 1.5,
    big: 9007199254740993n,
    e: 1000,
    n: -3,
  });
});

test('every integer below an exact property is a bigint', () => {
  const text = '{"slot":null,"body":{"bps":50,"list":[1,[2.5,3]]},"bps":[50]}';
  assert.deepEqual(parseJson(text, wide, exact), { slot: null, body: { bps: 50n, list: [1n, [2.5, 3n]] }, bps: [50] });
});

test('text is never taken for an integer', () => {
  for (const text of ['12', '\u000012', '\u0000', '\u0000\u00005', '"7"', '\\', '\\"9', '{"slot":1}', '\ud83d\ude00 5', '']) {
    const value = { slot: text, [text]: text, list: [text] };
    assert.deepEqual(parseJson(JSON.stringify(value), wide, exact), value);
  }
});

test('what is no JSON is refused', () => {
  for (const text of ['', '{', '01', '{"a":01}', '1n', '{"amount":1.}', '[1,]', '+1', '- 1', 'NaN', '"\u0000']) {
    assert.throws(() => parseJson(text, wide), SyntaxError, text);
  }
});

test('a bigint is written as the integer that it is', () => {
  const value = { amount: 18446744073709551615n, list: [1n, 'x', null, undefined], none: undefined, text: 'a"\n\u0000' };
  const text = stringifyJson(value);
  assert.equal(text, '{"amount":18446744073709551615,"list":[1,"x",null,null],"text":"a\\"\\n\\u0000"}');
  assert.deepEqual(parseJson(text, wide), { amount: 18446744073709551615n, list: [1, 'x', null, null], text: 'a"\n\u0000' });
});

test('a member named __proto__ is a member', () => {
  const read = parseJson('{"__proto__":{"slot":1}}', wide);
  assert.equal(Object.getPrototypeOf(read), Object.prototype);
  assert.deepEqual(Object.keys(read), ['__proto__']);
});
