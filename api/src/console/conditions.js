// Conditions of a webhook's filters: as a form shows them, as the API takes them, and what is wrong with them.

import { byId } from './page.js';

// A public key in base 58.
export const ADDRESS = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

const DISCRIMINATOR = /^([0-9a-f]{2}){1,32}$/i;
const BASE58 = /^[1-9A-HJ-NP-Za-km-z]+$/;
const NUMBER = /^\d+$/;

export const words = (id) => byId(id).value.split(/\s+/).filter((word) => word !== '');

// The lines of a field, each as its words.
const lines = (id) => byId(id).value.split('\n').map((line) => line.trim()).filter((line) => line !== '').map((line) => line.split(/\s+/));

const LISTS = [['accounts-required', 'accountsRequired'], ['accounts-excluded', 'accountsExcluded']];

// Null takes a condition away.
const some = (list) => (list.length === 0 ? null : list);

// The conditions of the form, as members of `filters`.
export function read() {
  const outcome = byId('outcome').value;
  const size = byId('data-size').value.trim();
  return {
    outcome: outcome === 'any' ? null : outcome,
    votes: byId('votes').checked ? null : false,
    ...Object.fromEntries(LISTS.map(([id, member]) => [member, some(words(id))])),
    instructions: some(lines('instructions').map(([programId, discriminator]) => ({ programId, discriminator }))),
    eventNames: some(words('event-names')),
    memcmp: some(lines('memcmp').map(([offset, bytes]) => ({ offset: Number(offset), bytes }))),
    dataSize: size === '' ? null : Number(size),
  };
}

// Puts the conditions of a webhook into the form; those of none where there is no webhook.
export function fill(filters = {}) {
  byId('outcome').value = filters.outcome ?? 'any';
  byId('votes').checked = filters.votes !== false;
  for (const [id, member] of LISTS) byId(id).value = (filters[member] ?? []).join('\n');
  byId('instructions').value = (filters.instructions ?? []).map(({ programId, discriminator }) => `${programId} ${discriminator}`).join('\n');
  byId('event-names').value = (filters.eventNames ?? []).join('\n');
  byId('memcmp').value = (filters.memcmp ?? []).map(({ offset, bytes }) => `${offset} ${bytes}`).join('\n');
  byId('data-size').value = filters.dataSize ?? '';
  byId('conditions').open = describe(filters).length > 0;
}

// What is wrong with them, before the API is asked; empty where nothing is.
export function fault(events) {
  for (const [id, member] of LISTS) {
    const wrong = words(id).find((word) => !ADDRESS.test(word));
    if (wrong !== undefined) return `${member}: ${wrong} is no address; write base58, one a line`;
  }
  const instruction = lines('instructions').find(([program, data, more]) => !ADDRESS.test(program) || !DISCRIMINATOR.test(data ?? '') || more !== undefined);
  if (instruction !== undefined) return `instructions: ${instruction.join(' ')} is none; write a program and 1 to 32 bytes in hexadecimal`;
  const memcmp = lines('memcmp').find(([offset, bytes, more]) => !NUMBER.test(offset) || !BASE58.test(bytes ?? '') || more !== undefined);
  if (memcmp !== undefined) return `memcmp: ${memcmp.join(' ')} is none; write where the bytes begin, and the bytes in base58`;
  const size = byId('data-size').value.trim();
  if (size !== '' && !NUMBER.test(size)) return `dataSize: ${size} is no number of bytes`;
  if ((size !== '' || lines('memcmp').length > 0) && !events.includes('accountChange')) return 'memcmp, dataSize: they are about accounts; choose accountChange, or leave them out';
  if (words('event-names').length > 0 && !events.includes('programEvent')) return 'eventNames: they are about program events; choose programEvent, or leave them out';
  return '';
}

// The conditions that are set, in words: name and value.
export const describe = ({ outcome, votes, accountsRequired, accountsExcluded, instructions, eventNames, memcmp, dataSize }) =>
  [
    ['outcome', outcome],
    ['votes', votes === false ? 'do not match' : undefined],
    ['must mention', accountsRequired?.join(' ')],
    ['must not mention', accountsExcluded?.join(' ')],
    ['instructions', instructions?.map(({ programId, discriminator }) => `${programId} ${discriminator}`).join(', ')],
    ['event names', eventNames?.join(' ')],
    ['data must hold', memcmp?.map(({ offset, bytes }) => `${bytes} at ${offset}`).join(', ')],
    ['bytes of data', dataSize],
  ].filter(([, value]) => value !== undefined && value !== null);
