import type { CustomTypesConfig } from 'pg';

const oids = { bool: 16, bytea: 17, int8: 20, int2: 21, int4: 23, oid: 26, float4: 700, float8: 701, numeric: 1700 } as const;

/** Rows look as they do on SQLite: numbers, texts, bytes; 0 and 1 for booleans. Everything else arrives as text. */
export const valueTypes: CustomTypesConfig = {
  getTypeParser: ((oid: number) => parsers.get(oid) ?? asText) as CustomTypesConfig['getTypeParser'],
};

const asText = (text: string) => text;

const parsers = new Map<number, (text: string) => unknown>([
  [oids.bool, (text) => (text === 't' ? 1 : 0)],
  [oids.bytea, parseBytes],
  [oids.int8, parseNumber],
  [oids.numeric, parseNumber],
  [oids.int2, Number],
  [oids.int4, Number],
  [oids.oid, Number],
  [oids.float4, Number],
  [oids.float8, Number],
]);

/** @throws RangeError for a whole number that a JavaScript number cannot represent. */
function parseNumber(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  if (Number.isNaN(value)) throw new RangeError('The database returned a value that is not a number');
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER) throw new RangeError(`The database returned ${text}, which is beyond 2^53`);
  return value;
}

function parseBytes(text: string): Uint8Array {
  // `bytea_output = hex`, which each session sets.
  return Uint8Array.fromHex(text.slice(2));
}
