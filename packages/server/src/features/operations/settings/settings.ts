import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { Configuration } from '../../../kernel/config/configuration.ts';
import { configJsonSchema } from '../../../kernel/config/json-schema.ts';
import { redactedConfig } from '../../../kernel/config/redacted.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';

export interface SettingsDeps {
  /** The schema of the whole of config.yaml. */
  readonly schema: z.ZodObject;
  readonly configuration: Pick<Configuration<Readonly<Record<string, unknown>>>, 'current' | 'restartNeeded'>;
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

  return {
    sections,
    methods: {
      async 'config.read'({ section }) {
        const { current, restartNeeded } = deps.configuration;
        const common = { sections, restartNeeded: [...restartNeeded] };
        if (section === undefined) return { config: redactedConfig(deps.schema, current, deps.redactText), ...common };
        const part = redactedConfig(deps.schema, { [known(section)]: current[section] }, deps.redactText);
        return { section, config: z.record(z.string(), z.unknown()).parse(part)[section] ?? null, ...common };
      },
      async 'config.schema'({ section }) {
        if (section === undefined) return { schema: configJsonSchema(deps.schema), sections };
        const part: unknown = deps.schema.shape[known(section)];
        if (!(part instanceof z.ZodType)) throw new AppError('internal', `Section ${section} has no schema`);
        return { section, schema: { 'x-gatehouse-apply': 'restart', ...configJsonSchema(part) }, sections };
      },
    },
  };
}
