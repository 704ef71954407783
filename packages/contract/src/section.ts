import * as z from 'zod';

type Section<Inner extends z.ZodType = z.ZodType> = z.ZodDefault<z.ZodLazy<Inner>>;

/**
 * A section that most files do not have: its schema, hundreds of objects, is built when one does. `absent` is what the schema makes of an
 * empty section, as `npm run gen` wrote it down.
 */
export function section<Inner extends z.ZodType>(build: () => Inner, absent: object): Section<Inner> {
  // The schema made it; JSON has wider types.
  return z.lazy(build).default(absent as never);
}

export function isSection(schema: z.core.$ZodType): schema is Section {
  return schema instanceof z.ZodDefault && schema.unwrap() instanceof z.ZodLazy;
}

/** Writes the default of a section like that of a part with its own defaults: to be given as `override` of `z.toJSONSchema`. */
export function sectionDefault(
  side: 'input' | 'output',
  { zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: { default?: unknown } },
): void {
  if (!isSection(zodSchema)) return;
  if (side === 'input') jsonSchema.default = {};
  else delete jsonSchema.default;
}

/** Returns what each section of a schema is when the file does not have it. */
export function absentSections(schema: z.ZodObject): Record<string, unknown> {
  const sections = Object.entries(schema.shape).flatMap(([name, part]) => (isSection(part) ? [[name, part] as const] : []));
  return Object.fromEntries(sections.map(([name, part]) => [name, part.unwrap().unwrap().parse({})]));
}
