import { t } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { plural } from '../../data/format.ts';
import type { Change } from '../../ui/schema/changes.ts';
import { wirePath } from '../../ui/schema/paths.ts';

export type Preview = Result<'config.patch'>;

/** Returns what changes of config.yaml would do. Nothing is written. */
export function previewChanges(client: Client, changes: readonly Change[], signal: AbortSignal): Promise<Preview> {
  return client.call('config.patch', { changes: toWire(changes), dryRun: true, confirm: true }, { signal });
}

export function toWire(changes: readonly Change[]): { path: string; value: unknown }[] {
  return changes.map(({ path, value }) => ({ path: wirePath(path), value }));
}

/** Says when changes would be in force. */
export function outlookOf({ changed, restart }: Preview): string {
  if (changed.length === 0) return t('Only the text of config.yaml changes');
  if (restart.length === 0) return t('In force as soon as it is saved');
  return restart.length === changed.length
    ? t('In force after a restart')
    : t('{need} a restart', { need: plural(restart.length, 'of them needs', 'of them need') });
}
