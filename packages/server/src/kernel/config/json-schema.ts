import { sectionDefault } from '@gatehouse/contract';
import * as z from 'zod';
import { applyOf } from './schema-walk.ts';

/**
 * Returns the JSON Schema of what may be written in the file or a part of it. `x-gatehouse-apply` says whether a change of a key and all
 * below it takes effect at once (`live`) or after a restart (`restart`); `section` marks keys of the top level, which all have one.
 */
export function configJsonSchema(schema: z.ZodType): Record<string, unknown> {
  return {
    ...z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
      override(at) {
        const { zodSchema, jsonSchema, path } = at;
        sectionDefault('input', at);
        delete jsonSchema['apply'];
        const mark = applyOf(zodSchema) ?? (path.length === 2 && path[0] === 'properties' ? 'restart' : undefined);
        if (mark !== undefined) jsonSchema['x-gatehouse-apply'] = mark;
      },
    }),
  };
}
