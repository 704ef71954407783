import { t } from '../../language.ts';
import type { Setting } from '../../ui/schema/setting.ts';

const groups: readonly (readonly [title: string, sections: readonly string[]])[] = [
  [t('Access'), ['gateway', 'security', 'approvals', 'secrets']],
  [t('Models and agents'), ['providers', 'models', 'agents', 'routing', 'budgets', 'embedding', 'skills', 'mcp']],
  [t('Work'), ['autonomy', 'durable', 'scheduler', 'webhooks', 'exec', 'workspaces', 'webSearch', 'links', 'browser', 'channels']],
  [t('Operation'), ['storage', 'media', 'tts', 'imageGen', 'logging', 'observability']],
];

export interface SectionGroup {
  readonly title: string;
  readonly sections: readonly Setting[];
}

/** Sorts the sections of the configuration by subject; sections that are new to the dashboard come last. */
export function groupSections(sections: readonly Setting[]): readonly SectionGroup[] {
  const known = groups.map(([title, names]) => ({ title, sections: names.flatMap((name) => sections.filter(({ id }) => id === name)) }));
  const rest = sections.filter(({ id }) => !groups.some(([, names]) => names.includes(id)));
  return [...known, { title: t('More'), sections: rest }].filter((group) => group.sections.length > 0);
}
