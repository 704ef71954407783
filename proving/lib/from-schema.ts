import fc from 'fast-check';
import * as z from 'zod';

/** The subset of JSON Schema that zod writes. */
const JsonSchema = z.looseObject({
  $ref: z.string().optional(),
  type: z.string().optional(),
  const: z.unknown().optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  oneOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  required: z.array(z.string()).optional(),
  additionalProperties: z.unknown().optional(),
  propertyNames: z.unknown().optional(),
  items: z.unknown().optional(),
  pattern: z.string().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  minItems: z.number().optional(),
  maxItems: z.number().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
});

const deepest = 6;

/** Generates values that match a JSON Schema; nearly all of them also satisfy rules that it cannot express. */
export function fromSchema(schema: z.ZodType): fc.Arbitrary<unknown> {
  const whole = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const defs = z.record(z.string(), z.unknown()).parse(whole.$defs ?? {});
  return build(whole, defs, 0);
}

function build(raw: unknown, defs: Readonly<Record<string, unknown>>, depth: number): fc.Arbitrary<unknown> {
  const parsed = JsonSchema.safeParse(raw);
  if (!parsed.success || depth > deepest) return fc.constantFrom(null, true, 0, 'x');
  const schema = parsed.data;
  const inner = (part: unknown): fc.Arbitrary<unknown> => build(part, defs, depth + 1);
  if (schema.$ref !== undefined) return inner(defs[schema.$ref.replace('#/$defs/', '')]);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined) return fc.oneof(...options.map(inner));
  switch (schema.type) {
    case 'object': {
      const required = schema.required ?? [];
      const properties = Object.entries(schema.properties ?? {}).map(([name, part]) => [name, inner(part)] as const);
      const own = fc.record(Object.fromEntries(properties), { requiredKeys: required });
      if (schema.additionalProperties === undefined || schema.additionalProperties === false || properties.length > 0) return own;
      return fc.dictionary(
        schema.propertyNames === undefined ? fc.string({ maxLength: 12 }) : textOf(schema.propertyNames),
        inner(schema.additionalProperties),
        {
          maxKeys: 4,
        },
      );
    }
    case 'array':
      return fc.array(schema.items === undefined ? fc.jsonValue({ maxDepth: 2 }) : inner(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems ?? 5, (schema.minItems ?? 0) + 5),
      });
    case 'string':
      return textOf(schema);
    case 'integer':
      return fc.integer({ min: Math.ceil(schema.minimum ?? -1_000), max: Math.floor(Math.min(schema.maximum ?? 100_000, 2 ** 31 - 1)) });
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function textOf(raw: unknown): fc.Arbitrary<string> {
  const { pattern, minLength = 0, maxLength = 300 } = JsonSchema.parse(raw);
  const plain = fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 60)), unit: 'grapheme' });
  if (pattern === undefined) return plain;
  try {
    return fc.stringMatching(new RegExp(pattern, 'u')).filter((text) => text.length >= minLength && text.length <= maxLength);
  } catch {
    // Patterns with lookahead cannot be inverted.
    return plain;
  }
}

const oddValues: readonly unknown[] = [
  null,
  true,
  '',
  ' ',
  '\u0000',
  '\ud800',
  '../../etc/passwd',
  '${jndi:ldap://x}',
  "' OR 1=1 --",
  'x'.repeat(20_000),
  0,
  -0,
  -1,
  1e308,
  2 ** 53,
  0.1,
  [],
  {},
  [[[[]]]],
  { length: 1e9 },
  { toString: 1, valueOf: 1, toJSON: 1 },
  { constructor: { prototype: {} } },
];

/** Generates JSON texts that are one or two steps away from a value: parts swapped, dropped, added, doubled, and damage to the text itself. */
export function damaged(value: fc.Arbitrary<unknown>): fc.Arbitrary<string> {
  const step = fc.record({ at: fc.nat(), kind: fc.nat(5), odd: fc.constantFrom(...oddValues), key: fc.string({ maxLength: 8 }) });
  const shape = fc.tuple(value, fc.array(step, { minLength: 1, maxLength: 3 })).map(([whole, steps]) => {
    let changed = structuredClone(whole);
    for (const { at, kind, odd, key } of steps) changed = changeOne(changed, at, kind, structuredClone(odd), key);
    return JSON.stringify(changed) ?? 'null';
  });
  const text = fc.tuple(value, fc.nat(), fc.nat(11)).map(([whole, at, kind]) => damageText(JSON.stringify(whole) ?? 'null', at, kind));
  return fc.oneof({ arbitrary: shape, weight: 3 }, { arbitrary: text, weight: 2 }, fc.json({ maxDepth: 4 }));
}

/** Changes one position of a value, found by counting. */
function changeOne(whole: unknown, at: number, kind: number, odd: unknown, key: string): unknown {
  const positions: [object, string][] = [];
  const collect = (value: unknown, depth: number): void => {
    if (typeof value !== 'object' || value === null || depth > 20) return;
    for (const name of Object.keys(value)) {
      positions.push([value, name]);
      collect(Reflect.get(value, name), depth + 1);
    }
  };
  collect(whole, 0);
  const position = positions[at % Math.max(1, positions.length)];
  if (position === undefined) return odd;
  const [holder, name] = position;
  const was: unknown = Reflect.get(holder, name);
  if (kind === 0) Reflect.deleteProperty(holder, name);
  else if (kind === 1 && !Array.isArray(holder)) Reflect.set(holder, `${key}?`, odd);
  else if (kind === 2) Reflect.set(holder, name, [was]);
  else if (kind === 3) Reflect.set(holder, name, { [key]: was });
  else Reflect.set(holder, name, odd);
  return whole;
}

function damageText(text: string, at: number, kind: number): string {
  const cut = at % (text.length + 1);
  const insert = (piece: string): string => text.slice(0, cut) + piece + text.slice(cut);
  switch (kind) {
    case 0:
      return text.slice(0, cut);
    case 1:
      return insert('NaN');
    case 2:
      return text.replace(/^\{/, '{"__proto__":{"admin":true},');
    case 3:
      return text.replace(/^\{/, '{"\\u005f_proto__":1,');
    case 4:
      return text.replace(/"([^"]+)":/, '"$1":1,"$1":');
    case 5:
      return `\ufeff${text}`;
    case 6:
      return `${text}${text}`;
    case 7:
      return insert('/* */');
    case 8:
      return text.replaceAll('"', "'");
    case 9:
      return insert('\u0000');
    case 10:
      return `${'['.repeat(65 + (at % 5_000))}${text}`;
    default:
      return insert(',');
  }
}
