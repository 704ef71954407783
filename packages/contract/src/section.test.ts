import { expect, test } from 'vitest';
import * as z from 'zod';
import { absentSections, section, sectionDefault } from './section.ts';

function counted() {
  let built = 0;
  const build = () => {
    built += 1;
    return z.strictObject({ size: z.int().default(3) });
  };
  return { schema: z.strictObject({ part: section(build, { size: 3 }).describe('A part.') }), builds: () => built };
}

test('a section is built only when it is there, and then checked as any other', () => {
  const { schema, builds } = counted();
  expect(schema.parse({}, { jitless: true })).toEqual({ part: { size: 3 } });
  expect(builds()).toBe(0);
  expect(schema.parse({ part: {} })).toEqual({ part: { size: 3 } });
  expect(schema.safeParse({ part: { sise: 4 } }).success).toBe(false);
  expect(builds()).toBeGreaterThan(0);
});

test('its default is what its schema makes of an empty section, and is documented as an empty section', () => {
  const { schema } = counted();
  expect(absentSections(schema)).toEqual({ part: { size: 3 } });
  const documented = (io: 'input' | 'output') => z.toJSONSchema(schema, { io, override: (at) => sectionDefault(io, at) }).properties?.['part'];
  expect(documented('input')).toMatchObject({ default: {}, properties: { size: { default: 3 } } });
  expect(documented('output')).not.toHaveProperty('default');
});
