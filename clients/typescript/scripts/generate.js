// Generator of `src/generated`: types and tables from `openapi.json` and `idls/swap_guard.json`.
//
// The output is made by every build and is not committed, so that it cannot differ from what it is made of.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const repository = new URL('../../../', import.meta.url);
const folder = new URL('../src/generated/', import.meta.url);

const read = (path) => JSON.parse(readFileSync(new URL(path, repository), 'utf8'));

// The largest integer that a JavaScript number holds exactly with all below it.
const SAFE = Number.MAX_SAFE_INTEGER;

const isInteger = (schema) => [schema.type].flat().includes('integer');

// Whether an integer may be too large for a JavaScript number.
const isWide = (schema) => isInteger(schema) && (schema.format === 'int64' || (schema.maximum ?? 0) > SAFE);

// Calls `visit` with the name and the schema of every property in the document.
function eachProperty(node, visit) {
  if (node === null || typeof node !== 'object') {
    return;
  }
  for (const [name, schema] of Object.entries(node.properties ?? {})) {
    visit(name, schema);
  }
  for (const child of Object.values(node)) {
    eachProperty(child, visit);
  }
}

// Names of the properties that are read as bigint. A name that is narrow in one answer and wide in another is wide in
// both, so that the name alone decides.
function wideNames(document) {
  const names = new Set();
  eachProperty(document.components.schemas, (name, schema) => {
    if (isWide(schema) || (schema.oneOf ?? []).some(isWide)) {
      names.add(name);
    }
    if (schema.type === 'array' && isWide(schema.items ?? {})) {
      throw new Error(`${name} is an array of wide integers, whose elements have no name: teach src/json.ts about it`);
    }
  });
  return names;
}

// Members of problems that stand in no schema, because only some codes have them.
const PROBLEM_MEMBERS = ['held', 'needed', 'slotLag'];

// TypeScript's type for an integer. `undefined` leaves it to the generator.
function typeOfInteger(schema, wide, property) {
  const factory = ts.factory;
  const keyword = (kind) => factory.createKeywordTypeNode(kind);
  const bigint = keyword(ts.SyntaxKind.BigIntKeyword);
  const number = keyword(ts.SyntaxKind.NumberKeyword);
  const orNull = (types) => {
    const all = [schema.type].flat().includes('null') ? [...types, factory.createLiteralTypeNode(factory.createNull())] : types;
    return all.length === 1 ? all[0] : factory.createUnionTypeNode(all);
  };
  if (!isInteger(schema) || schema.enum) {
    return undefined;
  }
  if (isWide(schema)) {
    // What has a limit of its own is a field of a request, where small numbers are convenient.
    return orNull(schema.format === 'int64' ? [bigint] : [bigint, number]);
  }
  return wide.has(property) ? orNull([bigint, number]) : undefined;
}

// The last name in a reference such as `#/components/schemas/Webhook/properties/heartbeat`.
const propertyOf = (path) => path?.split('/').at(-1);

async function schemaTypes(document, wide) {
  const nodes = await openapiTS(document, {
    transform: (schema, { path }) => typeOfInteger(schema, wide, propertyOf(path)),
  });
  return astToString(nodes);
}

function operationTable(document) {
  const lines = [];
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, { operationId }] of Object.entries(operations)) {
      lines.push(`  ${operationId}: ['${method.toUpperCase()}', '${path}'],`);
    }
  }
  return lines.sort().join('\n');
}

function guardTable({ address, instructions, errors }) {
  const lines = instructions.map(({ name, discriminator, accounts, args }) => {
    const hex = Buffer.from(discriminator).toString('hex');
    const words = (list) => JSON.stringify(list.map(({ name }) => name).join(' '));
    return `  '${hex}': ['${name}', ${words(args)}, ${words(accounts)}],`;
  });
  const pinned = instructions.flatMap(({ accounts }) => accounts.filter(({ address }) => address));
  const exchanges = [...new Set(pinned.map(({ address }) => address))];
  if (exchanges.length !== 1) {
    throw new Error(`the guard pins ${exchanges.length} exchanges, and src/explain.ts knows of one`);
  }
  const codes = errors.map(({ code, name, msg }) => `  ${code}: [${JSON.stringify(name)}, ${JSON.stringify(msg)}],`);
  return { address, exchange: exchanges[0], lines: lines.join('\n'), codes: codes.join('\n') };
}

function write(name, text) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(new URL(name, folder), text);
}

const document = read('openapi.json');
const wide = wideNames(document);
write('schema.ts', await schemaTypes(document, wide));
write(
  'operations.ts',
  `/** Method and path of every operation, by its name. */
export const OPERATIONS = {
${operationTable(document)}
} as const;

/** Properties of answers whose integers are read as bigint. */
export const WIDE: ReadonlySet<string> = new Set(
  '${[...wide, ...PROBLEM_MEMBERS].sort().join(' ')}'.split(' '),
);
`,
);
const guard = guardTable(read('idls/swap_guard.json'));
write(
  'guard.ts',
  `/** Address of the guard. */
export const GUARD = '${guard.address}';

/** Address of the exchange on mainnet, which the guard pins. */
export const EXCHANGE = '${guard.exchange}';

/** Name, arguments and accounts of each instruction of the guard, by its discriminator. */
export const GUARD_INSTRUCTIONS: Readonly<Record<string, readonly [name: string, args: string, accounts: string]>> = {
${guard.lines}
};

/** Name and message of each error of the guard, by its code. */
export const GUARD_ERRORS: Readonly<Record<number, readonly [name: string, message: string]>> = {
${guard.codes}
};
`,
);
