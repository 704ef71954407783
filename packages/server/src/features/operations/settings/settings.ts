import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { redactedConfig } from '../../../kernel/config/redacted.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';

export interface SettingsDeps {
  /** The schema of the whole of config.yaml. */
  readonly schema: z.ZodObject;
  /** The effective configuration, as parsed at start. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly redactText: (text: string) => string;
}

/** The public view of the configuration: never a secret (json-rpc.md §4, config). */
export function createSettings(deps: SettingsDeps): {
  readonly methods: HandlersOf<'config.read' | 'config.schema'>;
  readonly sections: readonly string[];
} {
  const sections = Object.keys(deps.schema.shape);

  function known(section: string): string {
    if (!sections.includes(section))
      throw new AppError('not_found', `Unknown config section: "${section}". Valid sections: ${sections.join(', ')}`, { param: 'section' });
    return section;
  }

  /** Source of a value and its parts: the schema of one section, or of all. */
  function jsonSchema(schema: z.ZodType): Record<string, unknown> {
    return { ...z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) };
  }

  return {
    sections,
    methods: {
      async 'config.read'({ section }) {
        if (section === undefined) return { config: redactedConfig(deps.schema, deps.config, deps.redactText), sections };
        const part = redactedConfig(deps.schema, { [known(section)]: deps.config[section] }, deps.redactText);
        return { section, config: z.record(z.string(), z.unknown()).parse(part)[section] ?? null, sections };
      },
      async 'config.schema'({ section }) {
        if (section === undefined) return { schema: jsonSchema(deps.schema), sections };
        const part: unknown = deps.schema.shape[known(section)];
        if (!(part instanceof z.ZodType)) throw new AppError('internal', `Section ${section} has no schema`);
        return { section, schema: jsonSchema(part), sections };
      },
    },
  };
}
