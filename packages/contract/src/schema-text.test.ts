import { expect, test } from 'vitest';
import * as z from 'zod';
import { createSchemaWriter, type SchemaUse } from './json-schema.ts';
import { schemaRows, typeText } from './schema-text.ts';

const Colour = z.enum(['red', 'green']).meta({ id: 'TestColour' });
const Part = z.strictObject({ size: z.int().min(1).max(9).default(3), colour: Colour.optional() }).meta({ id: 'TestPart' });

function write(schema: z.ZodType) {
  const use: SchemaUse = { schema, side: 'input' };
  const writer = createSchemaWriter([use, { schema, side: 'output' }], { target: 'draft-7', refPrefix: '#/shapes/' });
  const shapes = writer.components();
  return { schema: writer.schema(use), shapes, lookup: (name: string) => shapes[name] };
}

test('a shape with two forms becomes two components, others stay one', () => {
  const { shapes, schema } = write(z.strictObject({ part: Part }));
  expect(Object.keys(shapes)).toEqual(['TestColour', 'TestPart', 'TestPartInput']);
  expect(schema['properties']).toEqual({ part: { $ref: '#/shapes/TestPartInput' } });
});

test('a shape around one with two forms has two forms itself', () => {
  const Whole = z.strictObject({ parts: z.array(Part) }).meta({ id: 'TestWhole' });
  expect(Object.keys(write(z.strictObject({ whole: Whole })).shapes)).toContain('TestWholeInput');
});

test('two shapes with one id are an error', () => {
  const one = z.strictObject({ a: z.string().meta({ id: 'TestTwice' }) });
  const other = z.strictObject({ a: z.int().meta({ id: 'TestTwice' }) });
  const uses: SchemaUse[] = [one, other].map((schema) => ({ schema, side: 'input' }));
  expect(() => createSchemaWriter(uses, { target: 'draft-7', refPrefix: '#/' })).toThrow('TestTwice');
});

test('rows name nested properties, list elements and map entries', () => {
  const { schema, lookup } = write(
    z.strictObject({
      name: z.string(),
      inner: z.strictObject({ deep: z.boolean() }).optional(),
      list: z.array(z.strictObject({ n: z.number() })),
      map: z.record(z.string(), z.strictObject({ v: z.string() })),
      part: Part,
    }),
  );
  const open = schemaRows(schema, { lookup, openReferences: true }).map((row) => row.path);
  expect(open).toEqual(['name', 'inner', 'inner.deep', 'list', 'list[].n', 'map', 'map.<key>', 'map.<key>.v', 'part', 'part.size', 'part.colour']);
  const closed = schemaRows(schema, { lookup, openReferences: false }).map((row) => row.path);
  expect(closed).not.toContain('part.size');
});

test.each([
  [z.int().min(1).max(200), 'integer, 1 to 200'],
  [z.int(), 'integer'],
  [z.string().min(1), 'string, not empty'],
  [z.string().max(5), 'string, at most 5 characters'],
  [z.array(z.string()).length(2), 'list of string, exactly 2'],
  [z.enum(['a', 'b', 'c']), '"a", "b" or "c"'],
  [z.literal(true), 'true'],
  [z.string().nullable(), 'string or null'],
  [z.record(z.string(), z.number()), 'map of number'],
  [z.unknown(), 'any value'],
  [z.url(), 'string (uri)'],
  [z.string().startsWith('x'), 'string'],
])('type text %#', (schema, text) => {
  expect(typeText(write(schema).schema)).toBe(text);
});

test('a property of a union has the values of all alternatives, and says which of them have it', () => {
  const { schema, lookup } = write(
    z.strictObject({
      schedule: z.discriminatedUnion('kind', [
        z.strictObject({ kind: z.literal('every'), everyMs: z.int(), note: z.string() }),
        z.strictObject({ kind: z.literal('at'), at: z.string(), note: z.string() }),
      ]),
    }),
  );
  const rows = schemaRows(schema, { lookup, openReferences: true }).map((row) => [row.path, typeText(row.schema), row.onlyWith]);
  expect(rows).toEqual([
    ['schedule', 'object', undefined],
    ['schedule.kind', '"every" or "at"', undefined],
    ['schedule.everyMs', 'integer', 'kind "every"'],
    ['schedule.note', 'string', undefined],
    ['schedule.at', 'string', 'kind "at"'],
  ]);
});
